"""Export models of other libraries and put each file through every command: a table in `docs/compatibility.md`.

    python tools/library_zoo.py [NAME ...] [--json FILE] [--write]

The models are small and randomly initialized. Each runs in a process of its own: export twice, save, check, load,
`load_module`, `Session`, sanitize, convert, digests and a diff of the two exports, and torch's own load of what pt2kit
saved. A library that is not installed is named and left out; `--write` puts the table into the docs.

Needs torch, and whichever of the libraries shall be tried.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "compatibility.md"
BEGIN, END = "<!-- libraries: tools/library_zoo.py -->", "<!-- end of libraries -->"
STEPS = ("export", "save", "check", "load", "load_module", "Session", "sanitize", "convert", "digest", "diff", "torch")
TIMEOUT = 600
SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 64,
    "vocab_size": 128,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
Made = tuple[Any, tuple[Any, ...], dict[str, Any]]
"""A model, its positional and its keyword arguments."""


def _text(name: str, model: str = "AutoModelForCausalLM", /, **more: Any) -> Made:
    import torch
    import transformers

    config = transformers.AutoConfig.for_model(name, **{**SMALL, **more})
    inputs = {"input_ids": torch.randint(1, 100, (2, 8))}
    if model == "AutoModelForCausalLM":
        return getattr(transformers, model).from_config(config), (), {**inputs, "use_cache": False}
    return getattr(transformers, model).from_config(config), (), inputs


def _seq2seq(name: str, **more: Any) -> Made:
    import torch
    import transformers

    config = transformers.AutoConfig.for_model(name, **more)
    ids = torch.randint(1, 100, (2, 8))
    model = transformers.AutoModelForSeq2SeqLM.from_config(config)
    return model, (), {"input_ids": ids, "decoder_input_ids": ids[:, :4], "use_cache": False}


def _pixels(name: str, size: int = 32, **more: Any) -> Made:
    import torch
    import transformers

    config = transformers.AutoConfig.for_model(name, **more)
    return transformers.AutoModel.from_config(config), (), {"pixel_values": torch.randn(1, 3, size, size)}


def _whisper() -> Made:
    import torch
    import transformers

    config = transformers.WhisperConfig(
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        vocab_size=128,
        max_source_positions=50,
        num_mel_bins=16,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    )
    model = transformers.WhisperForConditionalGeneration(config)
    sound = {"input_features": torch.randn(1, 16, 100), "decoder_input_ids": torch.ones(1, 4, dtype=torch.long)}
    return model, (), {**sound, "use_cache": False}


def _audio(name: str) -> Made:
    import torch
    import transformers

    config = transformers.AutoConfig.for_model(
        name,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        conv_dim=(16, 16),
        conv_stride=(5, 2),
        conv_kernel=(10, 3),
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4,
        num_feat_extract_layers=2,
    )
    return transformers.AutoModel.from_config(config), (), {"input_values": torch.randn(1, 800)}


def _clip() -> Made:
    import torch
    import transformers

    text = {key: SMALL[key] for key in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")}
    config = transformers.CLIPConfig(
        text_config={**text, "vocab_size": 128, "max_position_embeddings": 16, "eos_token_id": 2},
        vision_config={**text, "image_size": 32, "patch_size": 8},
    )
    inputs = {"input_ids": torch.randint(3, 100, (2, 8)), "pixel_values": torch.randn(2, 3, 32, 32)}
    return transformers.CLIPModel(config), (), inputs


def _cached() -> Made:
    """Return a decoder with a key-value cache among its inputs and outputs."""
    import torch
    import transformers
    from transformers.integrations import executorch

    executorch.register_dynamic_cache_export_support()
    config = transformers.LlamaConfig(**SMALL)
    model = transformers.LlamaForCausalLM(config).eval()
    with torch.no_grad():
        cache = model(input_ids=torch.randint(1, 100, (1, 5)), use_cache=True).past_key_values
    return model, (), {"input_ids": torch.randint(1, 100, (1, 1)), "past_key_values": cache, "use_cache": True}


def _timm(name: str, size: int = 64, **more: Any) -> Made:
    import timm
    import torch

    return timm.create_model(name, pretrained=False, num_classes=10, **more), (torch.randn(1, 3, size, size),), {}


def _vision(name: str, size: int = 64, **more: Any) -> Made:
    import torch
    import torchvision

    model = torchvision.models.get_model(name, weights=None, **more)
    return model, (torch.randn(1, 3, size, size),), {}


def _unet() -> Made:
    import diffusers
    import torch

    model = diffusers.UNet2DConditionModel(
        sample_size=16,
        block_out_channels=(32, 64),
        layers_per_block=1,
        cross_attention_dim=32,
        norm_num_groups=8,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        attention_head_dim=8,
    )
    return model, (torch.randn(1, 4, 16, 16), torch.tensor([3]), torch.randn(1, 5, 32)), {"return_dict": False}


def _vae() -> Made:
    import diffusers
    import torch

    model = diffusers.AutoencoderKL(
        block_out_channels=(32, 64),
        norm_num_groups=8,
        layers_per_block=1,
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
    )
    return model, (torch.randn(1, 3, 32, 32),), {"return_dict": False}


def _dit() -> Made:
    import diffusers
    import torch

    model = diffusers.DiTTransformer2DModel(
        num_attention_heads=2,
        attention_head_dim=16,
        in_channels=4,
        num_layers=2,
        sample_size=16,
        norm_num_groups=4,
        num_embeds_ada_norm=10,
    )
    more = {"timestep": torch.tensor([3]), "class_labels": torch.tensor([1]), "return_dict": False}
    return model, (torch.randn(1, 4, 16, 16),), more


def _graphs(name: str, **more: Any) -> Made:
    import torch
    from torch_geometric.nn import models

    model = getattr(models, name)(8, 16, num_layers=2, out_channels=4, **more)
    return model, (torch.randn(6, 8), torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])), {}


def _segmentation(name: str) -> Made:
    import segmentation_models_pytorch as segmentation
    import torch

    model = getattr(segmentation, name)("resnet18", encoder_weights=None, classes=2)
    return model, (torch.randn(1, 3, 64, 64),), {}


def _yolo() -> Made:
    import torch
    from ultralytics import YOLO

    return YOLO("yolo11n.yaml").model.fuse(), (torch.randn(1, 3, 64, 64),), {}


def _quantized(name: str) -> Made:
    import torch
    from torchao import quantization

    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).eval()
    quantization.quantize_(model, getattr(quantization, name)())
    return model, (torch.randn(2, 64),), {}


_T5 = {
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 64,
    "num_layers": 2,
    "num_heads": 4,
    "vocab_size": 128,
    "decoder_start_token_id": 0,
}
_BART = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "vocab_size": 128,
}
_EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "num_local_experts": 4}
_VIT = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "image_size": 32,
    "patch_size": 8,
}
MODELS: dict[str, tuple[str, Callable[[], Made]]] = {
    **{
        name: ("transformers", partial(_text, name))
        for name in (
            "llama",
            "mistral",
            "qwen2",
            "qwen3",
            "gemma",
            "gemma2",
            "phi",
            "phi3",
            "olmo2",
            "granite",
            "stablelm",
            "cohere",
            "gpt_neox",
            "starcoder2",
            "smollm3",
        )
    },
    **{
        name: ("transformers", partial(_text, name, **_EXPERTS))
        for name in ("mixtral", "qwen2_moe", "qwen3_moe", "olmoe")
    },
    **{
        name: ("transformers", partial(_text, name, "AutoModelForMaskedLM"))
        for name in ("bert", "roberta", "electra", "modernbert")
    },
    "gpt2": ("transformers", partial(_text, "gpt2", n_embd=32, n_layer=2, n_head=4)),
    "mamba": ("transformers", partial(_text, "mamba", state_size=8)),
    "mamba2": ("transformers", partial(_text, "mamba2", state_size=8, head_dim=16, num_heads=4, n_groups=1)),
    "t5": ("transformers", partial(_seq2seq, "t5", **_T5)),
    "bart": ("transformers", partial(_seq2seq, "bart", **_BART)),
    "whisper": ("transformers", _whisper),
    "wav2vec2": ("transformers", partial(_audio, "wav2vec2")),
    "hubert": ("transformers", partial(_audio, "hubert")),
    "clip": ("transformers", _clip),
    "vit": ("transformers", partial(_pixels, "vit", **_VIT)),
    "dinov2": ("transformers", partial(_pixels, "dinov2", **_VIT)),
    "siglip_vision_model": ("transformers", partial(_pixels, "siglip_vision_model", **_VIT)),
    "llama with a cache": ("transformers", _cached),
    **{
        name: ("timm", partial(_timm, name))
        for name in (
            "resnet18",
            "convnext_atto",
            "efficientnet_b0",
            "mobilenetv3_small_050",
            "regnetx_002",
            "ghostnet_050",
            "repvgg_a0",
            "edgenext_xx_small",
        )
    },
    **{
        name: ("timm", partial(_timm, name, img_size=64))
        for name in ("vit_tiny_patch16_224", "swin_tiny_patch4_window7_224", "mixer_s32_224")
    },
    **{
        name: ("torchvision", partial(_vision, name))
        for name in (
            "resnet50",
            "densenet121",
            "mobilenet_v3_small",
            "shufflenet_v2_x0_5",
            "squeezenet1_1",
            "regnet_y_400mf",
            "efficientnet_v2_s",
        )
    },
    "googlenet": ("torchvision", partial(_vision, "googlenet", init_weights=False)),
    "maxvit_t": ("torchvision", partial(_vision, "maxvit_t", 224)),
    "swin_v2_t": ("torchvision", partial(_vision, "swin_v2_t")),
    **{
        name: ("torchvision", partial(_vision, name, weights_backbone=None))
        for name in ("deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large")
    },
    "UNet2DConditionModel": ("diffusers", _unet),
    "AutoencoderKL": ("diffusers", _vae),
    "DiTTransformer2DModel": ("diffusers", _dit),
    **{name: ("torch_geometric", partial(_graphs, name)) for name in ("GCN", "GraphSAGE", "GIN", "GAT")},
    **{name: ("segmentation_models_pytorch", partial(_segmentation, name)) for name in ("Unet", "FPN", "Linknet")},
    "yolo11n": ("ultralytics", _yolo),
    **{
        name: ("torchao", partial(_quantized, name))
        for name in (
            "Int8WeightOnlyConfig",
            "Int8DynamicActivationInt8WeightConfig",
            "Float8WeightOnlyConfig",
            "IntxWeightOnlyConfig",
        )
    },
}
"""Name -> the library it comes from, and what makes it with its arguments."""


class Trial:
    """One model on its way through the commands; `outcome` has "" for each step that worked."""

    def __init__(self, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], folder: Path) -> None:
        self.model, self.args, self.kwargs, self.folder = model, args, kwargs, folder
        self.outcome: dict[str, str] = {}

    def run(self) -> dict[str, str]:
        """Run the steps; those after a failed export or save are left out."""
        for step in STEPS:
            try:
                getattr(self, f"step_{step.lower()}")()
                self.outcome[step] = ""
            except Exception as error:  # noqa: BLE001 - whatever fails is the result
                text = f"{type(error).__name__}: {str(error).strip() or traceback.format_exc()[-200:]}"
                self.outcome[step] = text.splitlines()[0][:300].replace(f"{self.folder}/", "")
                if step in ("export", "save"):
                    break
        return self.outcome

    def copied(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return arguments that a call may change."""
        import copy

        return copy.deepcopy(self.args), copy.deepcopy(self.kwargs)

    def step_export(self) -> None:
        """Export twice, and keep what the program computes."""
        import torch

        self.programs = []
        for _ in range(2):
            args, kwargs = self.copied()
            self.programs.append(torch.export.export(self.model, args, kwargs, strict=False))
        args, kwargs = self.copied()
        with torch.no_grad():
            self.expected = torch.utils._pytree.tree_leaves(self.programs[0].module()(*args, **kwargs))

    def step_save(self) -> None:
        """Save both."""
        import pt2kit

        self.files = [self.folder / f"{number}.pt2" for number in range(2)]
        for program, file in zip(self.programs, self.files, strict=True):
            pt2kit.save(program, file)

    def step_check(self) -> None:
        """Find nothing but warnings."""
        import pt2kit

        problems = pt2kit.check(self.files[0]).errors
        if problems:
            raise ValueError(f"{len(problems)} errors, the first: {problems[0]}")

    def step_load(self) -> None:
        """Load, run, and compare bits."""
        import pt2kit

        self.same(pt2kit.load(self.files[0]).module())

    def step_load_module(self) -> None:
        """Load as a module, run, and compare bits."""
        import pt2kit

        self.same(pt2kit.load_module(self.files[0]))

    def same(self, module: Any) -> None:
        """Compare a module's outputs with the program's."""
        import torch

        args, kwargs = self.copied()
        with torch.no_grad():
            outputs = torch.utils._pytree.tree_leaves(module(*args, **kwargs))
        for number, (one, other) in enumerate(zip(outputs, self.expected, strict=True)):
            if isinstance(other, torch.Tensor):
                torch.testing.assert_close(one, other, equal_nan=True, msg=lambda text, n=number: f"output {n}: {text}")

    def step_session(self) -> None:
        """Run without torch and compare within tolerances."""
        import numpy as np
        import torch

        import pt2kit

        args, kwargs = self.copied()
        outputs = pt2kit.run(self.files[0], *map(_arrays, args), **{name: _arrays(one) for name, one in kwargs.items()})
        leaves = [one for one in torch.utils._pytree.tree_leaves(outputs) if isinstance(one, np.ndarray)]
        expected = [one for one in self.expected if isinstance(one, torch.Tensor)]
        if len(leaves) == len(expected):  # containers without their class are opaque to torch's pytree
            for one, other in zip(leaves, expected, strict=True):
                np.testing.assert_allclose(one, other.numpy(), rtol=1e-3, atol=1e-4)

    def step_sanitize(self) -> None:
        """Sanitize, and load the result."""
        import pt2kit

        clean = self.folder / "clean.pt2"
        pt2kit.sanitize(self.files[0], clean)
        self.same(pt2kit.load_module(clean))

    def step_convert(self) -> None:
        """Convert to an older release and back, as far as it goes without loss of meaning."""
        import pt2kit

        older, newer = self.folder / "older.pt2", self.folder / "newer.pt2"
        pt2kit.convert(self.files[0], older, target="torch==2.9")
        pt2kit.convert(older, newer, target="torch==2.13")
        self.same(pt2kit.load_module(newer))

    def step_digest(self) -> None:
        """Give two exports of one model one digest."""
        import pt2kit

        one, other = (pt2kit.digest(file).program for file in self.files)
        if one != other:
            raise ValueError(f"{one} and {other}")

    def step_diff(self) -> None:
        """Find no difference between two exports."""
        import pt2kit

        difference = pt2kit.diff(*self.files)
        if difference.changes:
            raise ValueError(f"{len(difference.changes)} changes, the first: {difference.changes[0]}")

    def step_torch(self) -> None:
        """Let torch load what pt2kit saved."""
        import torch

        self.same(torch.export.load(str(self.files[0])).module())


def _arrays(value: Any) -> Any:
    """Return a value with arrays for tensors, and dicts for containers of a library."""
    import torch

    if isinstance(value, torch.Tensor):
        return value.detach().numpy()
    node = torch.utils._pytree.SUPPORTED_NODES.get(type(value))
    if node is None:
        return value
    if isinstance(value, (list, tuple)):
        return type(value)(map(_arrays, value))
    children, _ = node.flatten_with_keys_fn(value)
    return {key.key: _arrays(child) for key, child in children}


def run_one(name: str) -> dict[str, str]:
    """Try one model in this process."""
    import torch

    torch.manual_seed(0)
    try:
        model, args, kwargs = MODELS[name][1]()
    except Exception as error:  # noqa: BLE001 - a model that its library cannot make says nothing about a file
        return {"model": f"{type(error).__name__}: {str(error)[:200]}"}
    with tempfile.TemporaryDirectory() as folder:
        return Trial(model.eval(), args, kwargs, Path(folder)).run()


def run_all(names: list[str]) -> list[dict[str, Any]]:
    """Try models, each in a process of its own."""
    rows = []
    for name in names:
        library, began = MODELS[name][0], time.perf_counter()
        try:
            done = subprocess.run(
                [sys.executable, "-W", "ignore", __file__, "--one", name], capture_output=True, timeout=TIMEOUT
            )
            last = done.stdout.decode().splitlines()[-1:] or [""]
            outcome = json.loads(last[0]) if last[0].startswith("{") else {"process": done.stderr.decode()[-300:]}
        except subprocess.TimeoutExpired:
            outcome = {"process": f"more than {TIMEOUT} s"}
        rows.append({"library": library, "name": name, "outcome": outcome})
        failed = {step: text for step, text in outcome.items() if text}
        print(f"{library} {name}: {failed or 'everything works'} ({time.perf_counter() - began:.0f} s)", flush=True)
    return rows


def table(rows: list[dict[str, Any]], versions: dict[str, str]) -> str:
    """Return the table of the docs: per library, how many models passed each step, and what failed by name."""
    lines = [f"| library | models | {' | '.join(STEPS)} |", "|---" * (len(STEPS) + 2) + "|"]
    notes = []
    for library in dict.fromkeys(row["library"] for row in rows):
        own = [row for row in rows if row["library"] == library and "model" not in row["outcome"]]
        counts = [sum(row["outcome"].get(step) == "" for row in own) for step in STEPS]
        lines.append(f"| {library} {versions.get(library, '')} | {len(own)} | {' | '.join(map(str, counts))} |")
        for row in own:
            notes += [f"- {row['name']}, {step}: `{text}`" for step, text in row["outcome"].items() if text]
    return "\n".join([*lines, "", *notes])


def main() -> None:
    """Try the models that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*MODELS, []], metavar="NAME")
    parser.add_argument("--one", choices=MODELS, help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, help="write the rows there, too")
    parser.add_argument("--write", action="store_true", help="put the table into docs/compatibility.md")
    options = parser.parse_args()
    if options.one:
        sys.stdout.flush()
        outcome = run_one(options.one)
        print(f"\n{json.dumps(outcome)}")
        return
    versions: dict[str, str] = {}
    for library in sorted({library for library, _ in MODELS.values()}):
        try:
            versions[library] = importlib.import_module(library).__version__
        except Exception as error:  # noqa: BLE001 - a library that cannot be imported is left out
            print(f"{library} is left out: {error}")
    names = options.names or [name for name, (library, _) in MODELS.items() if library in versions]
    rows = run_all(names)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    if options.write:
        head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        _, _, tail = rest.partition(END)
        PAGE.write_text(f"{head}{BEGIN}\n{table(rows, versions)}\n{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
