"""Make the sample files of torchao under `tests/data/torchao`: models of one quantized layer.

    PYTHONPATH=/folder/with/torchao python -m tools.torchao_samples

torchao is no dependency of the project: install it into a folder (`pip install --no-deps --target`) for this alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

SAMPLES = Path(__file__).parents[1] / "tests" / "data" / "torchao"


class Layer(torch.nn.Module):
    """One linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = torch.nn.Linear(32, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply the layer."""
        return self.lin(x)


class Unused(torch.nn.Module):
    """A module with a weight that no kernel of this machine can use."""

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(weight, requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Leave the weight alone."""
        return x + 1


def quantized(config: Any) -> torch.nn.Module:
    """Return a layer that torchao quantized."""
    from torchao.quantization import quantize_

    layer = Layer().eval()
    quantize_(layer, config)
    return layer


def models() -> dict[str, Callable[[], torch.nn.Module]]:
    """Return what makes the model of each sample."""
    import torchao.quantization as ao
    from torchao.quantization.granularity import PerGroup

    def int4() -> torch.nn.Module:
        numbers = torch.arange(8 * 16, dtype=torch.int8).reshape(8, 16)
        scale, zero = torch.full((2, 8), 0.5, dtype=torch.bfloat16), torch.zeros(2, 8, dtype=torch.bfloat16)
        return Unused(ao.Int4Tensor(numbers, scale, zero, [1, 16], torch.Size((8, 32))))

    return {
        "int8_dynamic": lambda: quantized(ao.Int8DynamicActivationInt8WeightConfig()),
        "float8": lambda: quantized(ao.Float8WeightOnlyConfig()),
        "intx": lambda: quantized(ao.IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(16))),
        "int4": int4,
    }


def main() -> None:
    """Write the samples, each with the numbers that torchao gives for the weight if it can."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    SAMPLES.mkdir(exist_ok=True)
    for name, make in models().items():
        torch.manual_seed(0)
        model = make()
        program = torch.export.export(model, (torch.ones(2, 32),))
        torch.export.save(program, SAMPLES / f"{name}.pt2")
        if isinstance(model, Layer):
            numbers = program.state_dict["lin.weight"].dequantize().float().detach().numpy()
            np.save(SAMPLES / f"{name}.npy", numbers)


if __name__ == "__main__":
    main()
