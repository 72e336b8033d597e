"""Run hostile calls in some contexts, in a process that may die.

    python -m tests.bridge.run.unchecked_child inductor stored          # all calls
    python -m tests.bridge.run.unchecked_child inductor:1:4             # every fourth, from the second one on

Writes lines of JSON for each call: that it begins, and what became of the sound and of the hostile inputs.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from tests.bridge.run.unchecked_calls import CASES, Case, Program, saved
from tests.packages import bytes_of, edited

import pt2kit
from pt2kit.bridge.operators import resolve
from pt2kit.bridge.run.validation import validated

Run = Callable[[tuple[Any, ...]], Any]
"""Runs a program with inputs."""


def _floats(inputs: tuple[Any, ...]) -> list[int]:
    return [position for position, value in enumerate(inputs) if value.is_floating_point()]


def loaded(case: Case) -> Callable[..., Any]:
    """The program of a call, as `load_module` runs it."""
    return pt2kit.load_module(saved(Program(case.call), case.sound))


def with_gradients(module: Callable[..., Any]) -> Run:
    """Run a module with inputs that require gradients, forward and backward."""

    def run(inputs: tuple[Any, ...]) -> Any:
        result = module(*(value.clone().requires_grad_() if value.is_floating_point() else value for value in inputs))
        if result.requires_grad:
            result.real.sum().backward()
        return result

    return run


def plain(case: Case) -> Run:
    """The program as it is."""
    module = loaded(case)
    return lambda inputs: module(*inputs)


def compiled(case: Case, backend: str = "aot_eager") -> Run:
    """Compiled."""
    torch._dynamo.config.capture_dynamic_output_shape_ops = True  # for sizes that follow from numbers, torch 2.9
    module = torch.compile(loaded(case), backend=backend, fullgraph=True)
    return lambda inputs: module(*inputs)


class Reused(Program):
    """A module that also uses its inputs together with the result, which a compiler may merge with their validation."""

    def forward(self, *inputs: Any) -> Any:
        """Call the kernel."""
        result = super().forward(*inputs)
        first = result.flatten()[0].real
        return (result, *((value * first).sum() for value in inputs), *((value > first).any() for value in inputs))


def inductor(case: Case, again: bool = False) -> Run:
    """Compiled to machine code."""
    module = pt2kit.load_module(saved(Reused(case.call), case.sound))
    if again:
        module = torch.export.export(module, case.sound, strict=False).module()
    merged = torch.compile(module, fullgraph=not again)
    return lambda inputs: merged(*inputs)[0]


def exported_to_inductor(case: Case) -> Run:
    """Exported again, then compiled to machine code."""
    return inductor(case, again=True)


def exported(case: Case, strict: bool = False) -> Run:
    """Exported again, decomposed, written and read by torch."""
    module = loaded(case)
    program = torch.export.export(module, case.sound, strict=strict).run_decompositions({})
    again = torch.export.load(io.BytesIO(bytes_of(torch.export.save, program))).module()
    return lambda inputs: again(*inputs)


def exported_strictly(case: Case) -> Run:
    """Exported again by torch's compiler."""
    return exported(case, strict=True)


def vmapped(case: Case) -> Run:
    """Under vmap, over two calls: a sound one and the one in question."""
    module = loaded(case)

    def run(inputs: tuple[Any, ...]) -> Any:
        pairs = [torch.stack(pair) for pair in zip(case.sound, inputs, strict=True)]
        return torch.func.vmap(lambda *args: module(*args))(*pairs)

    return run


def vmapped_compiled(case: Case) -> Run:
    """Under vmap, compiled; the validated call is run between two graphs."""
    module = loaded(case)
    batched = torch.compile(torch.func.vmap(lambda *args: module(*args)), backend="aot_eager")
    return lambda inputs: batched(*[torch.stack(pair) for pair in zip(case.sound, inputs, strict=True)])


def vmapped_graph(case: Case) -> Run:
    """Traced under vmap."""
    module = loaded(case)
    pairs = [torch.stack((one, one)) for one in case.sound]
    from torch.fx.experimental.proxy_tensor import make_fx

    graph = make_fx(torch.func.vmap(lambda *args: module(*args)))(*pairs)
    return lambda inputs: graph(*[torch.stack(pair) for pair in zip(case.sound, inputs, strict=True)])


def dual(case: Case) -> Run:
    """Under jvp."""
    module = loaded(case)

    def run(inputs: tuple[Any, ...]) -> Any:
        places = _floats(inputs)

        def call(*floats: Any) -> Any:
            given = list(inputs)
            for place, value in zip(places, floats, strict=True):
                given[place] = value
            return module(*given)

        floats = tuple(inputs[place] for place in places)
        return torch.func.jvp(call, floats, tuple(map(torch.ones_like, floats)))[0]

    return run


def differentiated(case: Case) -> Run:
    """With gradients, forward and backward."""
    return with_gradients(loaded(case))


def functional(case: Case) -> Run:
    """Functionalized."""
    module = loaded(case)
    return lambda inputs: torch.func.functionalize(lambda *args: module(*args))(*inputs)


def traced(case: Case) -> Run:
    """Traced with fake tensors, then run."""
    from torch.fx.experimental.proxy_tensor import make_fx

    module = loaded(case)
    graph = make_fx(lambda *args: module(*args), tracing_mode="symbolic")(*case.sound)
    return lambda inputs: graph(*inputs)


class Stored(torch.nn.Module):
    """A module whose inputs are its buffers, through views and writes."""

    def __init__(self, case: Case, inputs: tuple[Any, ...], how: str) -> None:
        super().__init__()
        self.case = case
        self.how = how
        for number, value in enumerate(inputs):
            self.register_buffer(f"b{number}", value.clone())

    def forward(self, x: torch.Tensor) -> Any:
        """Call the kernel with the buffers."""
        values = [getattr(self, f"b{number}") for number in range(len(self.case.sound))]
        if self.how == "views":
            values = [torch.ops.aten._unsafe_view(value.clone(), [-1]).view_as(value) for value in values]
        elif self.how == "writes":
            made = [torch.zeros_like(value) for value in values]
            for one, value in zip(made, values, strict=True):
                torch.ops.aten._unsafe_view(one, [-1])[:] = value.reshape(-1)
            values = made
        return self.case.call(*values) + x


def stored(case: Case, how: str = "plain") -> Run:
    """Inputs that the file stores."""

    def run(inputs: tuple[Any, ...]) -> Any:
        x = torch.zeros(())
        return pt2kit.load_module(saved(Stored(case, inputs, how), (x,)))(x)

    return run


def external(case: Case) -> Run:
    """Inputs that a file next to the program stores, two of them on the same bytes where they are equal."""

    def run(inputs: tuple[Any, ...]) -> Any:
        x = torch.zeros(())
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.pt2")
            with pt2kit.open(saved(Stored(case, inputs, "plain"), (x,))) as package:
                pt2kit.write(package, path, external="model.safetensors")
            return pt2kit.load_module(path)(x)

    return run


def through_views(case: Case) -> Run:
    """Inputs that the file stores, and a program passes on through views that torch does not follow."""
    return stored(case, "views")


def through_writes(case: Case) -> Run:
    """Inputs that the file stores, written over sound ones."""
    return stored(case, "writes")


def weights(case: Case) -> Run:
    """Inputs that the caller gives as weights."""
    x = torch.zeros(())
    data = saved(Stored(case, case.sound, "plain"), (x,))

    def run(inputs: tuple[Any, ...]) -> Any:
        given = {f"b{number}": value for number, value in enumerate(inputs)}
        return pt2kit.load_module(data, weights=given)(x)

    return run


def _body(case: Case, call: Callable[..., Any], leading: tuple[Any, ...] = (), strict: bool = False) -> Run:
    file = bytes_of(pt2kit.save, torch.export.export(Program(call), (*leading, *case.sound), strict=strict))
    module = pt2kit.load_module(file)
    return lambda inputs: module(*leading, *inputs)


def in_cond(case: Case) -> Run:
    """In a branch."""

    def call(which: Any, *inputs: Any) -> Any:
        return torch.cond(which, lambda *a: case.call(*a) * 1, lambda *a: case.call(*a) + 1, inputs)

    return _body(case, call, (torch.tensor(True),))


def in_cond_with_gradients(case: Case) -> Run:
    """In a branch that torch traces for gradients."""
    run = in_cond(case)
    return with_gradients(lambda *inputs: run(inputs))


def in_while_loop(case: Case) -> Run:
    """In the body of a loop."""
    from torch._higher_order_ops.while_loop import while_loop

    def call(*inputs: Any) -> Any:
        def body(number: Any, result: Any, *rest: Any) -> Any:
            return (number + 1, case.call(*rest) * 1, *(one.clone() for one in rest))

        first = torch.zeros(case.call(*case.sound).shape, dtype=case.call(*case.sound).dtype)
        return while_loop(lambda number, *_: number < 1, body, (torch.tensor(0), first, *inputs))[1]

    return _body(case, call)


def in_scan(case: Case) -> Run:
    """In the body of a scan."""
    from torch._higher_order_ops.scan import scan

    def call(xs: Any, *inputs: Any) -> Any:
        return scan(lambda carry, x: (carry + x, case.call(*inputs) * x), torch.zeros(()), xs, dim=0)[1]

    return _body(case, call, (torch.ones(2),), strict=True)


def in_map(case: Case) -> Run:
    """In the body of a map."""
    from torch._higher_order_ops.map import map as mapped

    def call(xs: Any, *inputs: Any) -> Any:
        return mapped(lambda x, *rest: case.call(*rest) * x, xs, *inputs)

    return _body(case, call, (torch.ones(2),))


def in_subgraph(case: Case) -> Run:
    """In a region that is compiled once."""
    region = torch.compiler.nested_compile_region(lambda *inputs: case.call(*inputs) * 1)
    return _body(case, lambda *inputs: region(*inputs), strict=True)


def in_checkpoint(case: Case) -> Run:
    """In a block whose values are computed again for gradients."""
    region = torch.compiler.nested_compile_region(lambda *inputs: case.call(*inputs) * 1)
    file = bytes_of(pt2kit.save, torch.export.export(Program(lambda *inputs: region(*inputs)), case.sound, strict=True))

    def change(tree: Any) -> None:
        for node in tree["graph_module"]["graph"]["nodes"]:
            if node["target"].endswith("invoke_subgraph"):
                node["target"] = "torch.ops.higher_order.tag_activation_checkpoint"
                node["inputs"] = [named for named in node["inputs"] if "as_string" not in named["arg"]]
                flag = {"name": "use_reentrant", "arg": {"as_bool": False}, "kind": 2}
                state = {"name": "preserve_rng_state", "arg": {"as_bool": False}, "kind": 2}
                node["inputs"] += [flag, state]

    return with_gradients(pt2kit.load_module(edited(file, change)))


def direct(case: Case) -> Run:
    """The operator itself, of those that torch cannot export."""

    def run(inputs: tuple[Any, ...]) -> Any:
        with Validating():
            return case.call(*inputs)

    return run


class Validating(torch.overrides.TorchFunctionMode):
    """Calls every operator as `load_module` does."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        operator = resolve(f"torch.ops.{func}") if isinstance(func, torch._ops.OpOverload) else None
        if operator is None:
            return func(*args, **given)
        return validated(operator, args, given, "node", frozenset())(*args, **given)


CONTEXTS: Mapping[str, Callable[[Case], Run]] = {
    context.__name__: context
    for context in (
        plain,
        compiled,
        inductor,
        exported_to_inductor,
        exported,
        exported_strictly,
        vmapped,
        vmapped_graph,
        vmapped_compiled,
        dual,
        differentiated,
        functional,
        traced,
        stored,
        external,
        through_views,
        through_writes,
        weights,
        in_cond,
        in_cond_with_gradients,
        in_while_loop,
        in_scan,
        in_map,
        in_subgraph,
        in_checkpoint,
        direct,
    )
}


def _outcome(run: Callable[[], Any]) -> str:
    try:
        return f"result {tuple(run().shape)}"
    except Exception as error:  # noqa: BLE001  whatever it is, the parent judges it
        return f"{type(error).__name__}: {error}"[:20_000]


def calls_in(context: str, first: int = 0, step: int = 1) -> list[str]:
    """Return the names of the calls that a context runs."""
    return [name for name, case in CASES.items() if case.is_fake != (context == "direct")][first::step]


def _say(context: str, name: str, **what: str) -> None:
    print(json.dumps({"context": context, "name": name, **what}), flush=True)


def main(*contexts: str) -> None:
    """Run calls in contexts."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for text in contexts:
        context, *some = text.split(":")
        for name in calls_in(context, *map(int, some)):
            case = CASES[name]
            torch._dynamo.reset() if "torch._dynamo" in sys.modules else None
            _say(context, name)
            try:
                run = CONTEXTS[context](case)
            except Exception as error:  # noqa: BLE001
                _say(context, name, built=f"{type(error).__name__}: {error}"[:20_000])
                continue
            sound = _outcome(lambda: run(case.sound))  # noqa: B023
            hostile = _outcome(lambda: run(case.hostile))  # noqa: B023
            _say(context, name, sound=sound, hostile=hostile)


if __name__ == "__main__":
    main(*sys.argv[1:])
