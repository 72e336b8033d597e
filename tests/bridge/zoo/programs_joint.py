"""Joint graphs: forward and backward in one program, with a loss and gradients in the signature."""

from __future__ import annotations

import torch
from tests.bridge.zoo.program import Program
from torch import nn
from torch.export import Dim, ExportedProgram
from torch.export.experimental import _export_forward_backward


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        self.norm = nn.BatchNorm1d(3)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, x, target):
        return self.loss(self.norm(self.body(x)), target)


class Several(nn.Module):
    """The loss is the second output, an input has a gradient too, and convolution's backward leaves results out."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 3, 3, bias=False)

    def forward(self, x):
        y = self.conv(x).relu()
        return y.detach(), y.square().mean()


def joint() -> ExportedProgram:
    """A classifier with its cross entropy."""
    program = torch.export.export(Classifier(), (torch.randn(5, 4), torch.randint(3, (5,))))
    return _export_forward_backward(program)


def joint_dynamic() -> ExportedProgram:
    """The same with a dynamic batch."""
    batch = Dim("batch", min=2, max=100)
    args = (torch.randn(5, 4), torch.randint(3, (5,)))
    program = torch.export.export(Classifier(), args, dynamic_shapes={"x": {0: batch}, "target": {0: batch}})
    return _export_forward_backward(program)


def joint_second() -> ExportedProgram:
    """A gradient for an input, and a loss that is not the first output."""
    program = torch.export.export(Several(), (torch.randn(1, 2, 8, requires_grad=True),))
    return _export_forward_backward(program, joint_loss_index=1)


def programs() -> list[Program]:
    """All programs of this file; torch gives them no module to call."""
    return [
        Program("joint", joint),
        Program("joint_dynamic", joint_dynamic),
        Program(
            "joint_second", joint_second, torch_saves="its check of a canonical form does not know the input's name"
        ),
    ]
