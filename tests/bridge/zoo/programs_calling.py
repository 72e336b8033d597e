"""Programs with every calling convention: nested and named inputs and outputs, constants, modules, odd names."""

from __future__ import annotations

import collections
import dataclasses
import enum

import torch
import torch.utils._pytree as pytree
from tests.bridge.zoo.program import Recipe
from torch import nn

Point = collections.namedtuple("Point", ["x", "y"])


@dataclasses.dataclass
class Pair:
    left: torch.Tensor
    right: torch.Tensor
    note: torch.Tensor | None = None


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Words:
    """A container with a context of its own."""

    def __init__(self, items, title):
        self.items, self.title = items, title


pytree._register_namedtuple(Point, serialized_type_name="zoo.Point")
torch.export.register_dataclass(Pair, serialized_type_name="zoo.Pair")
pytree.register_pytree_node(
    Words,
    lambda words: (list(words.items), {"title": words.title, "ü": ["a", 1]}),
    lambda items, context: Words(list(items), context["title"]),
    serialized_type_name="zoo.Words",
    to_dumpable_context=lambda context: context,
    from_dumpable_context=lambda dumped: dumped,
    flatten_with_keys_fn=lambda words: (
        [(pytree.SequenceKey(i), item) for i, item in enumerate(words.items)],
        {"title": words.title, "ü": ["a", 1]},
    ),
)


class Nested(nn.Module):
    def forward(self, x, *rest, pairs, extra=None, **more):
        total = x + pairs["a"][0] + pairs["b"]["c"] + sum(rest)
        return {"total": total, "list": [x, (total, None)]}, more["z"] + 1


class Named(nn.Module):
    def forward(self, p, d):
        return Point(p.x + 1, d.left * p.y), Pair(d.right, p.x)


class Containers(nn.Module):
    def forward(self, ordered, default, queue, size):
        total = ordered["b"] + ordered["a"] + default["k"] + queue[0]
        out = collections.OrderedDict([("z", total), ("a", total + 1)])
        return out, collections.defaultdict(list, {"d": total}), collections.deque([total], maxlen=3), x_like(total)


def x_like(x):
    return torch.ones_like(x)


class Keys(nn.Module):
    def forward(self, d):
        return {**{key: value + 1 for key, value in d.items()}, "é;,[": d[1] * 2}


class Scalars(nn.Module):
    def forward(self, x, i, f, b, s, n):
        y = x * i + f + (1 if b else 2) + len(s)
        return y if n is None else y + n


class NoneInput(nn.Module):
    def forward(self, x, y=None, z=None):
        return (x if y is None else x + y), z


class NoInputs(nn.Module):
    def forward(self):
        return torch.arange(4)


class Identity(nn.Module):
    def forward(self, x):
        return x


class Twice(nn.Module):
    def forward(self, x):
        y = x + 1
        return y, y, x, {"again": y}


class Passing(nn.Module):
    """Gives back inputs, weights and views of them."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.register_buffer("buffer", torch.zeros(2))

    def forward(self, x):
        return x, self.weight, self.buffer, x.view(-1)


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x, y):
        return self.linear(x) * y


class Middle(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.norm = Inner(), nn.LayerNorm(4)

    def forward(self, x, y, *, scale=2.0):
        return {"out": self.inner(self.norm(x), y) * scale, "y": y}


class Preserved(nn.Module):
    def __init__(self):
        super().__init__()
        self.middle, self.head = Middle(), nn.Linear(4, 2)

    def forward(self, x, y):
        found = self.middle(x, y=y, scale=3.0)
        return self.head(found["out"] + x) + found["y"].sum()


class OddNames(nn.Module):
    def __init__(self):
        super().__init__()
        names = ["a-b", "0", "a_b", "é", "class_", "with space", "a,b", "c;d", "e[0", "f(", "%2C"]
        self.d = nn.ModuleDict({name: nn.Linear(3, 3) for name in names})
        self.p = nn.ParameterDict({"input": torch.ones(3), "k": torch.ones(3)})

    def forward(self, input, self_, output):
        for layer in self.d.values():
            input = layer(input)
        return input + self.p["k"] * self_ + self.p["input"] * output


class Keyword(nn.Module):
    def __init__(self):
        super().__init__()
        self.add_module("class", nn.Linear(3, 3))
        self.add_module("lambda", nn.Linear(3, 3))

    def forward(self, x):
        return getattr(self, "class")(x) + getattr(self, "lambda")(x)


class ModuleInput(nn.Module):
    def forward(self, x, layer):
        return layer(x) + layer.bias


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(3, 3)), nn.Parameter(torch.zeros(3))

    def forward(self, x):
        return x @ self.weight


class MultiOutput(nn.Module):
    def forward(self, x):
        values, indices = torch.topk(x, 2)
        a, _, c = x.split([1, 2, 1], dim=0)
        low, high = torch.aminmax(x)
        q, _ = torch.linalg.qr(x)
        return values, indices, a, c, high - low, q, *torch.unbind(x)[1:3], torch.max(x, 0)[1]


def recipes() -> list[Recipe]:
    """Every model here and how it is exported."""
    two = lambda: torch.randn(2)  # noqa: E731
    all_ = ("plain", "strict", "decomp")
    return [
        Recipe(
            "kwargs_nested",
            Nested,
            lambda: (two(), two(), two()),
            lambda: {"pairs": {"a": [two()], "b": {"c": two()}}, "z": two(), "y": two()},
            variants=("plain", "strict"),
        ),
        Recipe("named_tuple", Named, lambda: (Point(two(), two()), Pair(two(), two())), variants=all_),
        Recipe(
            "containers",
            Containers,
            lambda: (
                collections.OrderedDict([("b", two()), ("a", two())]),
                collections.defaultdict(int, {"k": two()}),
                collections.deque([two()], maxlen=2),
                two(),
            ),
        ),
        Recipe("dict_keys", Keys, lambda: ({1: two(), "b": two(), None: two(), 2.5: two()},)),
        Recipe(
            "tuple_keys",
            Identity,
            lambda: ({(1, "x"): two()},),
            callable=False,
            flags={"torch_reads": "JSON turns the key into a list"},
        ),
        Recipe("enum_keys", Identity, lambda: ({Color.RED: two(), Color.BLUE: [two()]},), callable=False),
        Recipe("own_container", Identity, lambda: (Words([two(), two()], 'a "title"'),)),
        Recipe("scalar_inputs", Scalars, lambda: (two(), 3, 0.5, True, "abc", None), variants=("plain", "strict")),
        Recipe("none_input", NoneInput, lambda: (two(),), variants=("plain", "strict", "decomp")),
        Recipe("no_inputs", NoInputs, tuple),
        Recipe("identity", Identity, lambda: (two(),), variants=all_),
        Recipe("twice", Twice, lambda: (two(),), variants=all_),
        Recipe("passing", Passing, lambda: (two(),), variants=all_),
        Recipe(
            "preserve_module_call",
            Preserved,
            lambda: (torch.randn(3, 4), torch.randn(3, 4)),
            preserve=("middle", "middle.inner", "head"),
            variants=("plain", "strict"),
        ),
        Recipe("odd_names", OddNames, lambda: tuple(torch.randn(3) for _ in range(3)), variants=all_),
        Recipe(
            "odd_names_keyword",
            Keyword,
            lambda: (torch.randn(3),),
            flags={"torch_reads": "a module's name is a keyword"},
            callable=False,
        ),
        Recipe("module_input", ModuleInput, lambda: (torch.randn(2, 3), Layer())),
        Recipe("multi_output", MultiOutput, lambda: (torch.randn(4, 4),), variants=all_),
    ]
