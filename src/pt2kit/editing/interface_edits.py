"""Edits of inputs and outputs: graph, signature, trees, argument names, guards and ranges are updated together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pt2kit import schema, symbols
from pt2kit.editing import sizes as arithmetic
from pt2kit.editing import weight_edits
from pt2kit.editing.graphs import Node, Value
from pt2kit.editing.interface import (
    Branch,
    Input,
    Output,
    Tree,
    insert_in_group,
    leaves_of,
    parent_of,
    tuple_of,
)
from pt2kit.editing.metas import entry, kind_of
from pt2kit.editing.state import NEW_SYMBOL, EditState, check_unused, find_input, forget_inputs
from pt2kit.editing.structures import check_name
from pt2kit.editing.weights import to_view
from pt2kit.errors import GraphError
from pt2kit.graph.reading import readable_size
from pt2kit.graph.traversal import with_numbers
from pt2kit.messages import count_text, quote

_EFFECTS: Final = "torch.ops.higher_order.with_effects"
"""Runs an operator that has effects, in the order of the tokens."""


def add_input(editor: EditState, name: str, meta: Any, *, keyword: bool = False, position: int | None = None) -> Value:
    """Add an input to the call.

    Args:
        name: of the value, and of the argument.
        meta: what it is like: a `Value`, a `schema.TensorMeta` (`tensor_meta` makes one), or what else the value
            tables hold. Symbols that the program does not have get the range from 1 on; `ranges` changes it.
        keyword: whether it is passed by name, behind all others.
        position: among the positional arguments; at their end where it is None.

    Raises:
        GraphError: a name that is taken, or a call that is not known.
    """
    edit = f"add_input({quote(name)})"
    value_meta = entry(meta, edit)
    args, kwargs = editor.calls.sides(edit)
    names = editor.calls.names(edit) if editor.calls.arg_names else []
    if name in names or name in (kwargs.keys or []):
        raise GraphError(f"{edit}: expected a name that no argument has, got {quote(name)}", rule="K5")
    place = args.position(position, edit)
    editor.graph.names.check_free(edit, name)
    value = editor.graph.define(name, kind_of(value_meta, edit), value_meta, None)
    new = Input.of(value)
    if keyword:
        kwargs.insert(len(kwargs.children), new, name, edit)
        place = len(args.children) + len(kwargs.children) - 1
    else:
        args.insert(place, new, None, edit)
    if editor.calls.arg_names or len(args.children) + len(kwargs.children) == 1:
        editor.calls.arg_names.insert(place, name)
    insert_in_group(editor.inputs, new)
    editor.calls.order(editor.inputs, editor.calls.ins)
    for symbol in arithmetic.symbols_of(value_meta):
        editor.ranges.setdefault(symbol.name, NEW_SYMBOL)
    return value


def drop_input(editor: EditState, name: str) -> None:
    """Remove an argument from the call.

    Args:
        name: of a value or constant that nothing uses any more, or of an argument, with all that is in it.

    Raises:
        GraphError: it has users, or it is in a container of a shape of its own.
    """
    edit = f"drop_input({quote(name)})"
    args, kwargs = editor.calls.sides(edit)
    chosen: Tree = next((one for one in editor.user_inputs if one.name == name), None)
    if chosen is None:
        names = editor.calls.names(edit)
        if name not in names:
            there = ", ".join(one.name for one in editor.user_inputs[:8]) or "none"
            raise GraphError(f"{edit}: expected the name of an input or argument ({there}), got {quote(name)}")
        chosen = [*args.children, *kwargs.children][names.index(name)]
    for one in leaves_of(chosen):
        check_unused(one, "an input", edit, "; replace_uses, or freeze_input")
        _check_unwritten(editor, one, edit)
    take_out(editor, chosen, edit)


def rename_input(editor: EditState, old: str, new: str) -> None:
    """Rename an input: its value, and its argument or keyword; guards follow.

    Raises:
        GraphError: there is none of that name, or the new one is taken or no identifier.
    """
    edit = f"rename_input({quote(old)}, {quote(new)})"
    one = next((one for one in editor.inputs if old in (one.name, one.target)), None)
    names = editor.calls.names(edit) if editor.calls.ins is not None else []
    if one is None and old not in names:
        find_input(editor, old, edit)
    if one is not None:
        old_name = one.name
        if one.value is not None:
            editor.graph.rename(one.value, new)
        else:
            editor.graph.names.check_free(edit, new)
            one.rename_constant(new)
        old = old_name
    else:
        check_name(edit, new)
    if old in names and (one is None or one.is_user):
        _rename_argument(editor, names, old, new, edit)


def _rename_argument(editor: EditState, names: list[str], old: str, new: str, edit: str) -> None:
    if new in names:
        raise GraphError(f"{edit}: expected a name that no argument has, got {quote(new)}", rule="K5")
    place = names.index(old)
    args, kwargs = editor.calls.sides(edit)
    if editor.calls.arg_names:
        editor.calls.arg_names[place] = new
    if place >= len(args.children):
        keys = list(kwargs.keys or [])
        keys[place - len(args.children)] = new
        kwargs.keys = keys


def reorder_inputs(editor: EditState, order: Sequence[str]) -> None:
    """Reorder the positional arguments of the call.

    Args:
        order: the names of all positional arguments.

    Raises:
        GraphError: other names than those.
    """
    edit = f"reorder_inputs({', '.join(map(str, order))[:80]})"
    args, _ = editor.calls.sides(edit)
    count = len(args.children)
    names = editor.calls.names(edit)[:count]
    values = [child.name if isinstance(child, Input) else "" for child in args.children]
    places = [names.index(name) if name in names else values.index(name) if name in values else -1 for name in order]
    if sorted(places) != list(range(count)):
        raise GraphError(f"{edit}: expected all positional arguments once ({', '.join(names)}), got others")
    args.children[:] = [args.children[place] for place in places]
    known = editor.calls.arg_names
    known[:count] = [known[place] for place in places] if known else []
    editor.calls.order(editor.inputs, editor.calls.ins)


def freeze_input(editor: EditState, name: str, numbers: Any = None) -> None:
    """Freeze an input into a constant; the call has one argument less then.

    Args:
        name: of the input.
        numbers: an array for a tensor, an int for a sym_int; None for an input that is a constant already. Symbols
            that are sizes of the array become numbers everywhere.

    Raises:
        GraphError: an array of another type or of sizes that do not fit, or an input of another kind.
    """
    edit = f"freeze_input({quote(name)})"
    one = find_input(editor, name, edit)
    if not one.is_user:
        raise GraphError(f"{edit}: expected what the caller passes, got a {one.kind}")
    editor.calls.sides(edit)
    value = one.value
    if value is None:
        take_out(editor, one, edit)
    elif value.kind == "tensor":
        _freeze_tensor(editor, one, value, numbers, edit)
    elif value.kind == "sym_int" and isinstance(numbers, int):
        if value.is_output:
            raise GraphError(f"{edit}: expected a number that is not given back, got an output")
        _check_unwritten(editor, one, edit)
        put_number(editor, value, numbers, edit)
        take_out(editor, one, edit)
    else:
        raise GraphError(
            f"{edit}: expected an array for a tensor or an int for a sym_int, got {value.kind} and "
            f"{type(numbers).__name__}"
        )


def put_number(editor: EditState, value: Value, number: int, edit: str) -> None:
    """Replace a sym_int by a number in all of its users."""
    for user in value.users:
        for position, slot in enumerate(user.slots):
            if value not in slot.values:
                continue
            plain = slot.plain_with([number if one is value else one for one in slot.values])
            user.replace_slot(position, user.graph.slot(plain, None, edit), edit)


def _freeze_tensor(editor: EditState, one: Input, value: Value, numbers: Any, edit: str) -> None:
    weight_edits.check_package(editor, edit)
    if numbers is None:
        raise GraphError(f"{edit}: expected an array for the tensor, got None")
    target = weight_edits.free_name(editor, one.name)
    view = to_view(target, numbers, edit=edit)
    meta = value.meta
    if view.dtype != meta.dtype:
        raise GraphError(f"{edit}: expected numbers of the type {meta.dtype.name}, got {view.dtype.name}", rule="P14")
    _check_unwritten(editor, one, edit)
    new_sizes = bound_symbols(meta.sizes, view.sizes)
    check_sizes(editor, meta.sizes, view.sizes, new_sizes, edit)
    if any(arithmetic.known(substituted(size, new_sizes)) is None for size in meta.sizes):
        raise GraphError(f"{edit}: expected sizes that determine all symbols in {list(value.shape or ())}", rule="P14")
    for symbol, number in new_sizes.items():  # which may be refused: before anything is taken out
        specialize(editor, symbol, number)
    _leave_call(editor, one, edit)
    value.meta = weight_edits.meta_like(view, value.meta)
    one.kind, one.target = "tensor_constant", target
    editor.inputs.remove(one)
    insert_in_group(editor.inputs, one)
    editor.constants.payloads[target] = view


def bound_symbols(stated: Iterable[schema.SymInt], got: Iterable[int]) -> dict[str, int]:
    """Return the numbers of the symbols that are sizes by themselves."""
    unknown = [(size, number) for size, number in zip(stated, got, strict=False) if arithmetic.known(size) is None]
    found = [(symbols.parse(size.value.expr_str), number) for size, number in unknown]
    return {expr.name: number for expr, number in found if isinstance(expr, symbols.Symbol)}


def check_sizes(
    editor: EditState, stated: Sequence[schema.SymInt], got: Sequence[int], numbers: Mapping[str, int], edit: str
) -> None:
    """Refuse sizes of an array that do not fit a value, or the ranges of symbols.

    Args:
        editor: the program.
        stated: the sizes that the value has.
        got: those of the array.
        numbers: the numbers of symbols.
        edit: what messages call the edit.

    Raises:
        GraphError: other sizes (P14), or a number outside the range (E4).
    """
    exact = [arithmetic.known(substituted(size, numbers)) for size in stated]
    if len(exact) != len(got) or any(one not in (None, number) for one, number in zip(exact, got, strict=True)):
        raise GraphError(f"{edit}: expected sizes {list(map(readable_size, stated))}, got {list(got)}", rule="P14")
    for symbol, number in numbers.items():
        _check_range(editor, symbol, number, edit)


def specialize(editor: EditState, symbol: str, number: int) -> None:
    """Replace a symbol by a number in everything that is declared of values; nodes that compute it are kept.

    Raises:
        GraphError: there is no such symbol, or the number is not in its range.
    """
    edit = f"specialize({quote(symbol)}, {number})"
    if symbol not in editor.ranges:
        known = ", ".join(f"{name} from {low} to {high}" for name, (low, high) in editor.ranges.items()) or "none"
        raise GraphError(f"{edit}: expected a symbol of the program ({known}), got {quote(symbol)}")
    _check_range(editor, symbol, number, edit)
    substitute_symbols(editor, {symbol: number})
    editor.ranges.pop(symbol, None)


def substitute_symbols(editor: EditState, numbers: Mapping[str, Any]) -> None:
    """Put numbers, or other expressions, instead of symbols into everything that is declared of values."""
    for graph in editor.graph.walk():
        for value in graph.values.values():
            meta = with_numbers(value.meta, lambda number: substituted(number, numbers))
            if meta != value.meta:
                value.meta = meta


def substituted(number: Any, numbers: Mapping[str, Any]) -> Any:
    """Return a size, or another number of a value table, with numbers or other expressions instead of symbols."""
    if numbers.keys().isdisjoint(symbol.name for symbol in arithmetic.symbols_of(number)):
        return number
    expr = symbols.substitute(symbols.parse(number.value.expr_str), numbers)
    if not isinstance(number, schema.SymInt):
        return type(number)(as_expr=schema.SymExpr(symbols.to_srepr(expr), number.value.hint))
    if not symbols.free_symbols(expr):
        return arithmetic.number(int(symbols.evaluate(expr, {})))
    return arithmetic.expr_size(expr)


def _check_range(editor: EditState, symbol: str, number: int, edit: str) -> None:
    low, high = editor.ranges.get(symbol, (None, None))
    if (low is not None and number < low) or (high is not None and number > high):
        raise GraphError(f"{edit}: expected {symbol} from {low} to {high}, got {number}", rule="E4")


def add_output(editor: EditState, value: str | Value, *, key: str | None = None, position: int | None = None) -> Output:
    """Add an output to the result.

    Args:
        value: of the program's graph. If a call overwrites it later (`relu_`), the caller gets what is there in the
            end; insert a call of `aten.clone` after its producer to return it as it is there.
        key: where the program returns a dict.
        position: among the items of the tuple, list or dict that the program returns; at the end where it is None.
            A program that returns one value returns a tuple then.

    Raises:
        GraphError: a value that the format has no output for, or results in a container of a shape of its own.
    """
    value = editor.graph.value(value)
    edit = f"add_output({quote(value.name)})"
    outs = editor.calls.results(edit)
    if value.kind == "sym_bool":
        # Source: `deserialize_argument_spec` in torch/_export/serde/serialize.py, 2.13, which does not know them.
        raise GraphError(f"{edit}: expected a tensor or a number, got a truth value, which torch does not load there")
    if is_token(editor, value):
        raise GraphError(f"{edit}: expected a tensor or a number, got a token, which torch takes out")
    new = Output.of(value)
    if not isinstance(outs, Branch):
        outs = tuple_of([outs])
    place = outs.position(position, edit)
    outs.insert(place, new, key, edit)
    editor.calls.outs = outs
    new.slot.attach()
    insert_in_group(editor.outputs, new)
    editor.calls.order(editor.outputs, outs)
    return new


def is_token(editor: EditState, value: Value) -> bool:
    """Return whether a value is a token, which only orders effects."""
    maker = value.producer
    if maker is None:
        return any(one.kind == "token" and one.value is value for one in editor.inputs)
    return takes_token(maker) and maker.outputs[0] is value


def takes_token(node: Node) -> bool:
    """Return whether a node takes a token, and returns the next one before its results."""
    return node.target == _EFFECTS


def drop_output(editor: EditState, which: int | str) -> None:
    """Remove an output from the result.

    Args:
        which: its number among what the caller gets, from 0, or its name. A program whose last output goes returns
            an empty tuple. By its name also a write to a buffer, parameter or input goes.

    Raises:
        GraphError: there is none, or it is in a container of a shape of its own.
    """
    edit = f"drop_output({which!r})"
    one = find_output(editor, which, edit, editor.outputs)
    if one.kind == "token":
        raise GraphError(f"{edit}: expected an output other than a token, which goes out as it came in", rule="S13")
    if one.is_user:
        outs = editor.calls.results(edit)
        if outs is one:
            editor.calls.outs = tuple_of([])
        else:
            parent = parent_of(outs, one)
            if parent is None:
                raise GraphError(f"{edit}: expected an output of the out_spec, got {one!r}")
            parent.remove(one, edit)
    editor.outputs.remove(one)
    one.slot.detach()


def rename_output(editor: EditState, old: str, new: str) -> None:
    """Rename the value of an output, and the key of a dict that had its name.

    Raises:
        GraphError: there is none, or the new name is taken or no identifier.
    """
    edit = f"rename_output({quote(old)}, {quote(new)})"
    one = find_output(editor, old, edit, editor.outputs)
    if one.value is not None:
        editor.graph.rename(one.value, new)
    parent = parent_of(editor.calls.outs, one) if editor.calls.outs is not None else None
    keys = parent.keys if parent is not None else None
    if parent is not None and keys is not None and old in keys:
        parent.keys = [new if key == old else key for key in keys]


def reorder_outputs(editor: EditState, order: Sequence[int | str]) -> None:
    """Reorder the items of the tuple or list that the program returns.

    Args:
        order: the old numbers, from 0, in the new order; or names of values.

    Raises:
        GraphError: other numbers or names than those.
    """
    edit = f"reorder_outputs({', '.join(map(str, order))[:80]})"
    outs = editor.calls.outs
    if not isinstance(outs, Branch) or not outs.is_open or outs.keys is not None:
        raise GraphError(f"{edit}: expected a program that returns a tuple or list, got another")
    names = [child.name if isinstance(child, Output) else "" for child in outs.children]
    places = [one if isinstance(one, int) else names.index(one) if one in names else -1 for one in order]
    if sorted(places) != list(range(len(names))):
        raise GraphError(f"{edit}: expected each of the {count_text(len(names), 'item')} once, got {list(order)}")
    outs.children[:] = [outs.children[place] for place in places]
    editor.calls.order(editor.outputs, outs)


def find_output(editor: EditState, which: int | str, edit: str, others: Sequence[Output] = ()) -> Output:
    """Return what the caller gets, by its number or the name of its value.

    Args:
        editor: the program.
        which: number or name.
        edit: what messages call the edit.
        others: further outputs that a name may be of.

    Raises:
        GraphError: there is none.
    """
    users = editor.user_outputs
    if isinstance(which, int):
        if 0 <= which < len(users):
            return users[which]
        raise GraphError(f"{edit}: expected the number of one of {count_text(len(users), 'output')}, got {which}")
    output = next((one for one in [*users, *others] if one.name == which), None)
    if output is None:
        there = ", ".join(one.name for one in users[:8]) or "none"
        raise GraphError(f"{edit}: expected the name of an output ({there}), got {quote(which)}")
    return output


def _check_unwritten(editor: EditState, one: Input, edit: str) -> None:
    """Refuse to take out an input that an output writes to."""
    if any(output.input is one for output in editor.outputs):
        raise GraphError(f"{edit}: expected an input that the program does not write, got {quote(one.name)}", rule="S7")


def take_out(editor: EditState, chosen: Tree, edit: str) -> None:
    """Remove a leaf or an argument from the tree of the call, and its inputs, which nothing uses, from the graph.

    Raises:
        GraphError: it is in a container of a shape of its own.
    """
    _leave_call(editor, chosen, edit)
    forget_inputs(editor, leaves_of(chosen))


def _leave_call(editor: EditState, chosen: Tree, edit: str) -> None:
    """Remove a leaf or an argument from the tree of the call."""
    args, kwargs = editor.calls.sides(edit)
    parent = parent_of(editor.calls.ins, chosen)
    if parent is None:
        raise GraphError(f"{edit}: expected an input of the in_spec, got {chosen!r}")
    arguments = enumerate((*args.children, *kwargs.children))
    place = next(place for place, one in arguments if one is chosen or parent_of(one, chosen) is not None)
    parent.remove(chosen, edit)
    if parent in (args, kwargs) and editor.calls.arg_names:
        del editor.calls.arg_names[place]
