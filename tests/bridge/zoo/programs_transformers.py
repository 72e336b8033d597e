"""Small versions of real architectures from the transformers library, with random weights; none without the library."""

from __future__ import annotations

import functools
import importlib.util
import os
from typing import Any

import torch
from tests.bridge.zoo.program import Program
from torch import nn
from torch.export import Dim, ExportedProgram

SMALL: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}


class Outputs(nn.Module):
    """Calls a model by keyword and takes some of its outputs."""

    def __init__(self, model, names, **fixed):
        super().__init__()
        self.model, self.names, self.fixed = model.eval(), names, fixed

    def forward(self, **inputs):
        out = self.model(**inputs, **self.fixed)
        return tuple(getattr(out, name) for name in self.names)


class Text(Outputs):
    """The same for token ids and a padding mask."""

    def forward(self, input_ids, attention_mask):  # type: ignore[override]  # torch.export wants to see the names
        out = self.model(input_ids=input_ids, attention_mask=attention_mask, **self.fixed)
        return tuple(getattr(out, name) for name in self.names)


def _transformers() -> Any:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    return importlib.import_module("transformers")


def _ids(batch: int = 2, length: int = 8) -> dict[str, torch.Tensor]:
    ids = torch.arange(batch * length).reshape(batch, length) % 64
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def _batch_and_length() -> dict[str, Any]:
    shape = {0: Dim("batch", min=1, max=64), 1: Dim("length", min=2, max=32)}
    return {"input_ids": shape, "attention_mask": shape}


def decoder() -> ExportedProgram:
    """A Llama-like decoder with dynamic batch and sequence length."""
    t = _transformers()
    config = t.LlamaConfig(**SMALL, num_key_value_heads=1, max_position_embeddings=64, attn_implementation="eager")
    model = Text(t.LlamaForCausalLM(config), ("logits",), use_cache=False)
    return torch.export.export(model, (), _ids(), dynamic_shapes=_batch_and_length())


def mixture() -> ExportedProgram:
    """A decoder with a mixture of experts."""
    t = _transformers()
    config = t.MixtralConfig(
        **SMALL,
        num_key_value_heads=1,
        num_local_experts=3,
        num_experts_per_tok=2,
        max_position_embeddings=64,
        attn_implementation="eager",
        experts_implementation="batched_mm",
    )
    model = Outputs(t.MixtralForCausalLM(config), ("logits",), use_cache=False)
    return torch.export.export(model, (), _ids())


def bert(strict: bool) -> ExportedProgram:
    """A BERT encoder with dynamic batch and sequence length."""
    t = _transformers()
    config = t.BertConfig(**SMALL, max_position_embeddings=64, attn_implementation="sdpa")
    model = Text(t.BertModel(config), ("last_hidden_state", "pooler_output"))
    return torch.export.export(model, (), _ids(), dynamic_shapes=_batch_and_length(), strict=strict)


def vit() -> ExportedProgram:
    """A vision transformer, decomposed."""
    t = _transformers()
    config = t.ViTConfig(**{**SMALL, "vocab_size": 2}, image_size=16, patch_size=4)
    model = Outputs(t.ViTForImageClassification(config), ("logits",))
    return torch.export.export(model, (), {"pixel_values": torch.randn(2, 3, 16, 16)}).run_decompositions()


def t5() -> ExportedProgram:
    """An encoder and a decoder with cross attention and a tied embedding."""
    t = _transformers()
    config = t.T5Config(vocab_size=64, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, decoder_start_token_id=0)
    model = Outputs(t.T5ForConditionalGeneration(config), ("logits",), use_cache=False)
    ids = _ids()["input_ids"]
    return torch.export.export(model, (), {"input_ids": ids, "decoder_input_ids": ids[:, :4]})


def _call(names: str) -> list[Any]:
    inputs: dict[str, Any] = _ids()
    if names == "pixels":
        inputs = {"pixel_values": torch.ones(2, 3, 16, 16)}
    elif names == "both":
        inputs = {"input_ids": inputs["input_ids"], "decoder_input_ids": inputs["input_ids"][:, :4]}
    return [((), inputs)]


def programs() -> list[Program]:
    """All programs of this file, if the library is there."""
    if importlib.util.find_spec("transformers") is None:
        return []
    text, pixels, both = (functools.partial(_call, kind) for kind in ("text", "pixels", "both"))
    return [
        Program("hf_decoder", decoder, text, slow=True),
        Program("hf_mixture", mixture, text, slow=True),
        Program("hf_bert", functools.partial(bert, False), text, slow=True),
        Program("hf_bert__strict", functools.partial(bert, True), text, slow=True),
        Program("hf_vit", vit, pixels, slow=True),
        Program("hf_t5", t5, both, slow=True),
    ]
