"""The models that are measured: a recipe and a size -> an exported program in a `.pt2` file, and facts about it.

Imports torch and transformers, so it runs in a process of its own, which `programs.py` starts.
Every builder starts from the same seed: the same versions of torch and transformers give the same program and weights.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.export import Dim, ExportedProgram, export, save

SEED = 0
CHAIN_WIDTH = 8
PICTURE_SIDE = 32
WEIGHT_SIDE = 4096
WEIGHT_MB = 64  # WEIGHT_SIDE x WEIGHT_SIDE float32
VOCABULARY = 256
HIDDEN = {"vocab_size": VOCABULARY, "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4}


class Decoder(torch.nn.Module):
    """A decoder-only language model of the transformers library: token ids and a padding mask -> logits."""

    def __init__(self, layers: int) -> None:
        from transformers import LlamaConfig, LlamaForCausalLM

        super().__init__()
        config = LlamaConfig(
            **HIDDEN,
            num_hidden_layers=layers,
            num_key_value_heads=2,
            max_position_embeddings=2048,
            use_cache=False,
            attn_implementation="eager",
        )
        self.model = LlamaForCausalLM(config)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Logits [batch, seq, vocabulary] for ids and mask, both int64 [batch, seq]."""
        return self.model(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).logits


class Encoder(torch.nn.Module):
    """BERT of the transformers library: token ids and a padding mask -> hidden states and the pooled state."""

    def __init__(self, layers: int) -> None:
        from transformers import BertConfig, BertModel

        super().__init__()
        config = BertConfig(
            **HIDDEN, num_hidden_layers=layers, max_position_embeddings=512, attn_implementation="eager"
        )
        self.model = BertModel(config)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Hidden states [batch, seq, hidden] and the pooled state [batch, hidden] for int64 [batch, seq] inputs."""
        result = self.model(input_ids=input_ids, attention_mask=attention_mask)
        return result.last_hidden_state, result.pooler_output


class Pictures(torch.nn.Module):
    """A vision transformer of the transformers library: pictures -> hidden states and the pooled state."""

    def __init__(self, layers: int) -> None:
        from transformers import ViTConfig, ViTModel

        super().__init__()
        sizes = {name: HIDDEN[name] for name in ("hidden_size", "intermediate_size", "num_attention_heads")}
        config = ViTConfig(
            **sizes, num_hidden_layers=layers, image_size=PICTURE_SIDE, patch_size=4, attn_implementation="eager"
        )
        self.model = ViTModel(config)

    def forward(self, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Hidden states [batch, patches + 1, hidden] and the pooled state [batch, hidden] for float32 pictures."""
        result = self.model(pixel_values=pixels)
        return result.last_hidden_state, result.pooler_output


class Chain(torch.nn.Module):
    """Elementwise operators one after the other, four kinds in turn."""

    def __init__(self, nodes: int) -> None:
        super().__init__()
        self.nodes = nodes
        self.scale = torch.nn.Parameter(torch.randn(CHAIN_WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """A tensor like x, float32 [batch, CHAIN_WIDTH]."""
        for index in range(self.nodes):
            match index % 4:
                case 0:
                    x = torch.sin(x)
                case 1:
                    x = x + 1.0
                case 2:
                    x = x * self.scale
                case _:
                    x = torch.relu(x)
        return x


class Weights(torch.nn.Module):
    """Square matrices of WEIGHT_MB each, multiplied one after the other: many bytes, few nodes."""

    def __init__(self, count: int) -> None:
        super().__init__()
        for index in range(count):
            self.register_parameter(f"weight_{index:03d}", _matrix(index))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """A tensor like x, float32 [batch, WEIGHT_SIDE]."""
        for weight in self.parameters():
            x = torch.nn.functional.linear(x, weight)
        return x


def _matrix(index: int) -> torch.nn.Parameter:
    generator = torch.Generator().manual_seed(index)
    values = torch.empty(WEIGHT_SIDE, WEIGHT_SIDE).uniform_(-0.01, 0.01, generator=generator)
    return torch.nn.Parameter(values, requires_grad=False)


def _tokens(model: torch.nn.Module, longest: int) -> ExportedProgram:
    ids = torch.randint(0, VOCABULARY, (2, 16))
    dynamic = {0: Dim("batch", min=1, max=64), 1: Dim("seq", min=2, max=longest)}
    return export(model.eval(), (ids, torch.ones_like(ids)), dynamic_shapes=(dynamic, dynamic))


def _rows(model: torch.nn.Module, width: int) -> ExportedProgram:
    return export(model.eval(), (torch.randn(4, width),), dynamic_shapes=({0: Dim("batch", min=1, max=1024)},))


def transformer(layers: int) -> ExportedProgram:
    """A decoder with dynamic batch and sequence length: 53 nodes and 71 for each layer (transformers 5, torch 2.13)."""
    return _tokens(Decoder(layers), 2048)


def bert(layers: int) -> ExportedProgram:
    """A BERT encoder with dynamic batch and sequence length."""
    return _tokens(Encoder(layers), 512)


def vit(layers: int) -> ExportedProgram:
    """A vision transformer with a dynamic batch."""
    batch = {0: Dim("batch", min=1, max=64)}
    return export(Pictures(layers).eval(), (torch.randn(2, 3, PICTURE_SIDE, PICTURE_SIDE),), dynamic_shapes=(batch,))


def chain(nodes: int) -> ExportedProgram:
    """A chain of elementwise nodes with a dynamic batch."""
    return _rows(Chain(nodes), CHAIN_WIDTH)


def weights(megabytes: int) -> ExportedProgram:
    """Weights of this many MiB in tensors of WEIGHT_MB each, with a dynamic batch."""
    return _rows(Weights(megabytes // WEIGHT_MB), WEIGHT_SIDE)


def mlp(kilobytes: int) -> ExportedProgram:
    """A three-layer perceptron whose weights are about this many KiB, with a dynamic batch."""
    width = round((kilobytes * 1024 / 4 / 3) ** 0.5)
    layers = [torch.nn.Linear(width, width) for _ in range(3)]
    return _rows(torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1], torch.nn.ReLU(), layers[2]), width)


RECIPES: dict[str, Callable[[int], ExportedProgram]] = {
    "transformer": transformer,
    "bert": bert,
    "vit": vit,
    "chain": chain,
    "weights": weights,
    "mlp": mlp,
}


def build(recipe: str, size: int, out: Path) -> dict[str, Any]:
    """Export the model, save it at `out` and its facts next to it; returns the facts.

    The facts: call_function nodes of the outer graph, seconds that export and torch.export.save took, bytes, versions.
    """
    torch.manual_seed(SEED)
    started = time.perf_counter()
    program = RECIPES[recipe](size)
    exported = time.perf_counter()
    # torch names the archive's root folder after the file, so the unfinished file differs in its folder, not its name.
    with tempfile.TemporaryDirectory(dir=out.parent) as folder:
        partial = Path(folder, out.name)
        resting = time.perf_counter()
        save(program, partial)
        saved = time.perf_counter()
        facts = {
            "recipe": recipe,
            "size": size,
            "nodes": sum(node.op == "call_function" for node in program.graph.nodes),
            "bytes": partial.stat().st_size,
            "export_s": round(exported - started, 3),
            "save_s": round(saved - resting, 3),
            "torch": torch.__version__,
        }
        out.with_suffix(".json").write_text(json.dumps(facts, indent=1) + "\n")
        partial.replace(out)  # last: a file that is there is whole and has its facts
    return facts
