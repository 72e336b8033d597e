"""docs/digest.md, section 2, "Expressions", implemented from its text alone; part of `reference.py`."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from typing import Any

UNORDERED = ("Add", "Mul", "Max", "Min", "And", "Or", "Xor", "Equality", "Unequality")
INTEGER = ["FloorDiv", "CleanDiv", "CeilDiv", "ModularIndexing", "LShift", "RShift", "PowByNatural", "floor", "ceiling"]
INTEGER += ["FloorToInt", "CeilToInt", "TruncToInt", "RoundToInt", "Round", "IsNonOverlappingAndDenseIndicator"]
TOKEN = re.compile(r"[A-Za-z_]\w*|'[^']*'|-?[\d.eE+-]+|[(),=]")


def normal(text: str) -> tuple[str | int, set[str]]:
    """An expression in normal form, or the integer that it is, and its symbols."""
    text = re.sub(r"\bFunction\('(OpaqueUnaryFn_\w+)'\)", r"\1", text)
    tokens = TOKEN.findall(text)
    least: dict[str, int | None] = {}
    nested: dict[str, tuple[str, list[Any]]] = {}
    value = read(tokens, least, nested)
    if isinstance(value, dict) and set(value) <= {()}:
        return value.get((), 0), set()
    result = written(value)
    return result, set(re.findall(r"Symbol\('(\w+)'", result))


def read(tokens: list[str], least: dict[str, int | None], nested: dict[str, Any]) -> Any:
    """One value: a dict of terms for an integer, a text for anything else."""
    name = tokens.pop(0)
    if not tokens or tokens[0] != "(":
        return name
    tokens.pop(0)
    args: list[Any] = []
    raw = []
    while tokens[0] != ")":
        if tokens[0] == ",":
            tokens.pop(0)
        elif tokens[1] == "=":
            raw.append("".join(tokens[:3]))
            del tokens[:3]
        else:
            args.append(read(tokens, least, nested))
    tokens.pop(0)
    if name == "Integer":
        return clean({(): int(args[0])})
    if name in ("Symbol", "Float", "Rational"):
        text = f"{name}({', '.join([*args, *raw])})"
        if "integer=True" not in raw:
            return text
        least[text] = 1 if "positive=True" in raw else 0 if "nonnegative=True" in raw else None
        return {(text,): 1}
    return called(name, args, least, nested)


def called(name: str, args: list[Any], least: dict[str, int | None], nested: dict[str, Any]) -> Any:
    """A call whose arguments are in normal form."""
    integers = all(isinstance(arg, dict) for arg in args)
    number = args[1].get((), 0) if integers and len(args) == 2 and set(args[1]) <= {()} else -1
    if integers:
        if name == "Add":
            return added(args)
        if name == "Mul" and small(args):
            return multiplied(args)
        if name in ("Max", "Min"):
            return extreme(name, args, least, nested)
        if name in ("Pow", "PowByNatural") and 0 <= number <= 32 and small([args[0]] * number):
            return multiplied([args[0]] * number)
        if name in ("FloorDiv", "CleanDiv") and number > 0:
            whole = {key: count // number for key, count in args[0].items() if not count % number}
            rest = {key: count for key, count in args[0].items() if count % number}
            if set(rest) <= {()}:
                return added([whole, {(): sum(rest.values()) // number}])
            shared = math.gcd(number, *rest.values())
            inner = [{key: count // shared for key, count in rest.items()}, {(): number // shared}]
            return added([whole, atom(name, inner, least, nested)])
        if name in ("Mod", "PythonMod") and number > 0 and set(args[0]) <= {()}:
            return clean({(): args[0].get((), 0) % number})
    if name in INTEGER or (integers and (name in ("Mul", "Mod", "PythonMod") or (name == "Pow" and number >= 0))):
        return atom(name, args, least, nested)
    return text_of(name, args)


def atom(name: str, args: list[Any], least: dict[str, int | None], nested: dict[str, Any]) -> dict[Any, int]:
    """A call that is an integer."""
    text = text_of(name, args)
    nested[text] = (name, args)
    found = None
    if all(isinstance(arg, dict) for arg in args):
        if name in ("Max", "Min"):
            quantifier = any if name == "Max" else all
            found = next((n for n in (1, 0) if quantifier(at_least(arg, n, least) for arg in args)), None)
        elif name == "Mod" or (name == "PythonMod" and at_least(args[1], 0, least)):
            found = 0
        elif name in ("FloorDiv", "CleanDiv", "CeilDiv"):
            found = 0 if all(at_least(arg, 0, least) for arg in args) else None
    least[text] = found
    return {(text,): 1}


def extreme(name: str, args: list[Any], least: dict[str, int | None], nested: dict[str, Any]) -> dict[Any, int]:
    """The Max or Min of integers."""
    flat: list[Any] = []
    for arg in args:
        inner = nested.get(next(iter(arg))[0], ("", [])) if len(arg) == 1 and len(next(iter(arg))) == 1 else ("", [])
        flat += inner[1] if inner[0] == name and set(arg.values()) == {1} else [arg]
    unique = [one for place, one in enumerate(flat) if one not in flat[:place]]
    if len(unique) <= 8:
        sign = 1 if name == "Max" else -1
        unique = [
            one
            for one in unique
            if not any(
                other is not one and at_least(added([scaled(other, sign), scaled(one, -sign)]), 0, least)
                for other in unique
            )
        ]
    return unique[0] if len(unique) == 1 else atom(name, unique, least, nested)


def at_least(value: dict[Any, int], number: int, least: dict[str, int | None]) -> bool:
    """Return whether an integer is evidently at least a number: each atom from 1 is 1 more than a rest."""
    total: Counter[Any] = Counter({(): -number})
    for factors, count in value.items():
        choices = [[(), (factor,)] if least[factor] == 1 else [(factor,)] for factor in factors]
        if 2 ** sum(len(choice) - 1 for choice in choices) > 16:
            return False
        for chosen in itertools.product(*choices):
            total[tuple(itertools.chain(*chosen))] += count
    return all(n == 0 or (n > 0 and None not in [least[f] for f in factors]) for factors, n in total.items())


def small(args: list[Any]) -> bool:
    """Return whether a product is multiplied out."""
    terms = math.prod(map(len, args))
    factors = sum(max(map(len, arg), default=0) for arg in args)
    bits = sum(max((abs(count).bit_length() for count in arg.values()), default=0) for arg in args)
    short = terms <= 1 or max((len(text) for arg in args for key in arg for text in key), default=0) <= 256
    return terms <= 64 and factors <= 32 and bits <= 1024 and short


def clean(value: dict[Any, int]) -> dict[Any, int]:
    return {key: count for key, count in value.items() if count}


def scaled(value: dict[Any, int], factor: int) -> dict[Any, int]:
    return {key: count * factor for key, count in value.items()}


def added(values: list[dict[Any, int]]) -> dict[Any, int]:
    total: Counter[Any] = Counter()
    for value in values:
        total.update(value)
    return clean(total)


def multiplied(values: list[dict[Any, int]]) -> dict[Any, int]:
    total: Counter[Any] = Counter()
    for terms in itertools.product(*(value.items() for value in values)):
        total[tuple(sorted(itertools.chain(*(factors for factors, _ in terms))))] += math.prod(n for _, n in terms)
    return clean(total)


def written(value: Any) -> str:
    """The text of a value."""
    if isinstance(value, str):
        return value
    terms = []
    for factors, count in value.items():
        texts = [f"Integer({count})"] if count != 1 or not factors else []
        powers = Counter(factors).items()
        texts += [text if times == 1 else f"Pow({text}, Integer({times}))" for text, times in powers]
        terms.append(texts[0] if len(texts) == 1 else f"Mul({', '.join(sorted(texts))})")
    if len(terms) < 2:
        return terms[0] if terms else "Integer(0)"
    return f"Add({', '.join(sorted(terms))})"


def text_of(name: str, args: list[Any]) -> str:
    texts = [written(arg) for arg in args]
    return f"{name}({', '.join(sorted(texts) if name in UNORDERED else texts)})"
