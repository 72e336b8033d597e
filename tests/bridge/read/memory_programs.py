"""Programs that make buffers with `empty` and its kin: those that fill what they use, and those that let memory out.

Each takes a tensor of 3 by 4 numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

SOUND: dict[str, Callable[[Any], Any]] = {}
"""Programs that write all of what they let out."""

LEAKING: dict[str, Callable[[Any], Any]] = {}
"""Programs that let out memory that nothing was written to."""


class Calls(torch.nn.Module):
    """A module that calls a function."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


def sound(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Put a program into the list of sound ones."""
    SOUND[function.__name__] = function
    return function


def leaking(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Put a program into the list of those that let memory out."""
    LEAKING[function.__name__] = function
    return function


@sound
def rows(x: Any) -> Any:
    o = torch.empty(3, 4)
    for i in range(3):
        o[i] = x[i] * 2
    return o


@sound
def rotary(x: Any) -> Any:
    o = torch.empty_like(x)
    o[..., 0::2] = x[..., 0::2]
    o[..., 1::2] = -x[..., 1::2]
    return o


@sound
def halves(x: Any) -> Any:
    o = x.new_empty(x.shape[0], 8)
    o[:, :4] = x
    o[:, 4:] = x
    return o


@sound
def mat(x: Any) -> Any:
    o = torch.empty(2, 2)
    for i in range(2):
        for j in range(2):
            o[i, j] = x[i, j]
    return o


@sound
def bern(x: Any) -> Any:
    return torch.bernoulli(torch.empty_like(x), 0.5)


@sound
def viewas(x: Any) -> Any:
    return x.view_as(torch.empty(4, 3)) + x.reshape_as(torch.empty(4, 3)) + x.T.expand_as(torch.empty(4, 3))


@sound
def typeas(x: Any) -> Any:
    return x.type_as(torch.empty(1, dtype=torch.float64))


@sound
def unused(x: Any) -> Any:
    e = torch.empty(3)
    e + 1
    return x * 2


@sound
def foreach(x: Any) -> Any:
    e = [torch.empty(3, 4), torch.empty(3, 4)]
    torch._foreach_copy_(e, [x, x * 2])
    return e


@sound
def foreach_zero(x: Any) -> Any:
    e = [torch.empty(3, 4), torch.empty(3, 4)]
    torch._foreach_zero_(e)
    return e[0] + e[1]


@sound
def outarg(x: Any) -> Any:
    e = torch.empty(3, 4)
    torch.add(x, x, out=e)
    return e


@sound
def outrow(x: Any) -> Any:
    e = torch.empty_like(x * 2)
    for i in range(3):
        torch.mul(x[i], 2, out=e[i])
    return e


@sound
def empty_like_mid(x: Any) -> Any:
    h = torch.nn.functional.linear(x, torch.ones(5, 4))
    e = torch.empty_like(h)
    for i in range(3):
        e[i] = h[i]
    return e


@sound
def partial_read(x: Any) -> Any:
    e = torch.empty(10, 4)
    e[:3] = x
    return e[:3] * 2


@sound
def viewfill(x: Any) -> Any:
    e = torch.empty(12)
    e.view(3, 4).copy_(x)
    return e


@sound
def permfill(x: Any) -> Any:
    e = torch.empty(4, 3)
    e.t().copy_(x)
    return e


@sound
def reshapefill(x: Any) -> Any:
    e = torch.empty(3, 4)
    e.reshape(-1).copy_(x.reshape(-1))
    return e


@sound
def chunks(x: Any) -> Any:
    e = torch.empty(3, 4)
    a, b = e.chunk(2, dim=1)
    a.fill_(1)
    b.copy_(x[:, :2])
    return e


@sound
def unbinds(x: Any) -> Any:
    e = torch.empty(3, 4)
    for r, v in zip(e.unbind(0), x, strict=True):
        r.copy_(v)
    return e


@sound
def narrowfill(x: Any) -> Any:
    e = torch.empty(6, 4)
    e.narrow(0, 0, 3).copy_(x)
    e.narrow(0, 3, 3).zero_()
    return e.sum()


@sound
def condfill(x: Any) -> Any:

    def t(x):
        e = torch.empty_like(x)
        e.copy_(x)
        return e

    return torch.cond(x.sum() > 0, t, lambda x: x * 2, (x,))


@sound
def nograd(x: Any) -> Any:
    e = torch.empty(3, 4)
    with torch.no_grad():
        e.copy_(x)
    return e


@sound
def drop(x: Any) -> Any:
    return (
        torch.nn.functional.alpha_dropout(x, 0.5, True) + torch.nn.functional.dropout2d(x[None, None], 0.5, True)[0, 0]
    )


@sound
def rrelu(x: Any) -> Any:
    return torch.nn.functional.rrelu(x, training=True)


@sound
def randperm(x: Any) -> Any:
    return torch.empty(3, 4).normal_() + torch.empty(3, 4).uniform_(0, 1) + torch.empty(3, 4).exponential_()


@sound
def sizes(x: Any) -> Any:
    return x * torch.empty(5, 3).shape[0]


@sound
def zeroslike(x: Any) -> Any:
    return (
        torch.zeros_like(torch.empty(3, 4))
        + torch.ones_like(torch.empty(3, 4, dtype=torch.int32))
        + torch.empty(3, 4).new_zeros(4)
    )


@sound
def whereknown(x: Any) -> Any:
    e = torch.empty(3, 4)
    m = torch.arange(4) < 2
    y = torch.where(m, x, e)
    return torch.where(m, y, x)


@sound
def masked(x: Any) -> Any:
    e = torch.empty(3, 4)
    m = torch.arange(4) < 2
    y = e.masked_fill(m, 0.0)
    return y.masked_fill(~m, 1.0)


@sound
def copyto(x: Any) -> Any:
    e = torch.empty(3, 4)
    return e.copy_(x).to(torch.float64).contiguous()


@sound
def stack_cols(x: Any) -> Any:
    e = torch.empty(3, 2, 4)
    e[:, 0] = x
    e[:, 1] = x + 1
    return e.flatten(1)


@sound
def steps(x: Any) -> Any:
    e = torch.empty(7)
    e[0::3] = 1
    e[1::3] = 2
    e[2::3] = 3
    return e


@sound
def neg(x: Any) -> Any:
    e = torch.empty(4, 4)
    e[-1] = x[0]
    e[:-1] = x
    return e


@sound
def expanded(x: Any) -> Any:
    e = torch.empty(1, 4)
    e.copy_(x[:1])
    return e.expand(3, 4) + x


@sound
def zero_sized(x: Any) -> Any:
    return torch.cat([torch.empty(0, 4), x])


@sound
def setslice3(x: Any) -> Any:
    e = torch.empty(2, 3, 4)
    e[...] = x
    return e


@sound
def scaninit(x: Any) -> Any:
    e = torch.empty(3, 4)
    e.zero_()
    return torch._higher_order_ops.while_loop(lambda i, e: i < 3, lambda i, e: (i + 1, e + 1), (torch.tensor(0), e))


@sound
def randout(x: Any) -> Any:
    e = torch.empty(3, 4)
    torch.rand(3, 4, out=e)
    return e


@sound
def wherekept(x: Any) -> Any:
    n, y, e = torch.arange(4), x.clone(), torch.empty(4)
    y.mul_(2)
    e[1:] = x[0, 1:]
    return torch.where(n == 0, y[0], e)


@sound
def indexfill(x: Any) -> Any:
    e = x.new_empty(4, 4)
    e.index_fill_(0, torch.tensor([3, 1, 0, 2]), 1.0)
    return e


@sound
def indexput(x: Any) -> Any:
    e = x.new_empty(4, 4)
    e[torch.tensor([0, 2])] = x[0]
    e[torch.tensor([-1, 1])] = x[1]
    return e


@sound
def indexpairs(x: Any) -> Any:
    e = x.new_empty(2, 2)
    e[torch.tensor([0, 1]), torch.tensor([1, 0])] = x[0, :2]
    e[torch.tensor([[0], [1]]), torch.tensor([[0], [1]])] = x[0, 0]
    return e


@sound
def indexcolumns(x: Any) -> Any:
    e = x.new_empty(2, 4)
    e[:, torch.tensor([0, 1])] = x[:2, :2]
    return e.index_copy(1, torch.arange(2) + 2, x[:2, 2:4])


@sound
def maskput(x: Any) -> Any:
    e = x.new_empty(4)
    e[torch.arange(4) < 2] = 0.0
    e.masked_fill_(torch.arange(4) >= 2, 1.0)
    return e


@leaking
def leak_plain(x: Any) -> Any:
    return torch.empty(3, 4)


@leaking
def leak_add(x: Any) -> Any:
    return torch.empty_like(x) + x


@leaking
def leak_partial(x: Any) -> Any:
    o = torch.empty(4, 4)
    for i in range(3):
        o[i] = x[i]
    return o


@leaking
def leak_view(x: Any) -> Any:
    e = torch.empty(12)
    e.view(3, 4)[:2] = x[:2]
    return e.view(4, 3)


@leaking
def leak_cond(x: Any) -> Any:
    return torch.cond(x.sum() > 0, lambda x: torch.empty_like(x), lambda x: x * 2, (x,))


@leaking
def leak_condop(x: Any) -> Any:
    return torch.cond(x.sum() > 0, lambda x, e: x + e, lambda x, e: x * 2, (x, torch.empty(3, 4)))


@leaking
def leak_strided(x: Any) -> Any:
    return torch.empty_strided((2, 2), (4, 1))


@leaking
def leak_new(x: Any) -> Any:
    return x.new_empty(3)


@leaking
def leak_foreach(x: Any) -> Any:
    return torch._foreach_add([torch.empty(3), torch.empty(3)], 1.0)


@leaking
def leak_foreach2(x: Any) -> Any:
    e = [torch.empty(3, 4), torch.empty(3, 4)]
    torch._foreach_copy_(e[:1], [x])
    return e


@leaking
def leak_foreach3(x: Any) -> Any:
    z = [torch.zeros(3, 4)]
    torch._foreach_copy_(z, [torch.empty(3, 4)])
    return z


@leaking
def leak_clone(x: Any) -> Any:
    return torch.empty(3, 4).clone().t()


@leaking
def leak_steps(x: Any) -> Any:
    e = torch.empty(7)
    e[0::3] = 1
    e[1::3] = 2
    return e


@leaking
def leak_where(x: Any) -> Any:
    e = torch.empty(3, 4)
    return torch.where(torch.arange(4) < 2, x, e)


@leaking
def leak_whereu(x: Any) -> Any:
    return torch.where(x > 0, x, torch.empty(3, 4))


@leaking
def leak_cat(x: Any) -> Any:
    return torch.cat([x, torch.empty(1, 4)])


@leaking
def leak_index(x: Any) -> Any:
    return x[torch.empty(2, dtype=torch.long).clamp(0, 2)]


@leaking
def leak_intoview(x: Any) -> Any:
    y = x * 1
    y[0].copy_(torch.empty(4))
    return y


@leaking
def leak_input(x: Any) -> Any:
    x.copy_(torch.empty(3, 4))
    return torch.ones(1)


@leaking
def leak_masked(x: Any) -> Any:
    return torch.empty(3, 4).masked_fill(torch.arange(4) < 2, 0.0)


@leaking
def leak_diag(x: Any) -> Any:
    e = torch.empty(3, 3)
    e.diagonal().fill_(1)
    return e


@leaking
def leak_ip(x: Any) -> Any:
    return torch.empty(3, 4).index_put((torch.tensor([0, 1]),), x[:2])


@leaking
def leak_scatter(x: Any) -> Any:
    return torch.empty(3, 4).scatter(0, torch.zeros(1, 4, dtype=torch.long), x)


@leaking
def leak_item(x: Any) -> Any:
    return torch.full((2,), 1.0) * torch.empty(1).sum()


@leaking
def leak_nograd(x: Any) -> Any:
    with torch.no_grad():
        e = torch.empty(3, 4)
    return e * 1


@leaking
def leak_sort(x: Any) -> Any:
    return torch.sort(torch.empty(5)).values


@leaking
def leak_expand(x: Any) -> Any:
    return torch.empty(1, 4).expand(3, 4)


@leaking
def leak_split(x: Any) -> Any:
    a, b = torch.empty(3, 4).split(2, 1)
    a.fill_(0)
    return b


@leaking
def leak_emptycopy(x: Any) -> Any:
    e = torch.empty(3, 4)
    e[:0].copy_(x[:0])
    return e


@leaking
def leak_quant(x: Any) -> Any:
    return torch.empty(3, 4).to(torch.int32)


@leaking
def leak_bern(x: Any) -> Any:
    return torch.bernoulli(torch.empty(3, 4).abs())


@leaking
def leak_while(x: Any) -> Any:
    return torch._higher_order_ops.while_loop(
        lambda i, e: i < 3, lambda i, e: (i + 1, e + 1), (torch.tensor(0), torch.empty(3, 4))
    )


@leaking
def leak_outview(x: Any) -> Any:
    e = torch.empty(4, 4)
    torch.add(x[0], 1, out=e[0])
    return e


@leaking
def leak_real(x: Any) -> Any:
    e = torch.empty(3, 4, dtype=torch.complex64)
    e.real.copy_(x)
    return e


@leaking
def leak_dtype(x: Any) -> Any:
    return torch.empty(3, 4).view(torch.int32)


@leaking
def leak_addinplace(x: Any) -> Any:
    return torch.empty(3, 4).add_(x)


@leaking
def leak_changed_mask(x: Any) -> Any:
    n, e = torch.arange(4), torch.empty(4)
    e[1:] = x[0, 1:]
    n.view(4).add_(1)
    return torch.where(n == 0, x[0], e)


@leaking
def leak_changed_index(x: Any) -> Any:
    index, e = torch.tensor([0, 1]), torch.empty(2)
    index.mul_(0)
    e[index] = x[0, :2]
    return e


@leaking
def leak_index_fill(x: Any) -> Any:
    e = x.new_empty(4, 4)
    e.index_fill_(0, torch.tensor([3, 1, 0]), 1.0)
    return e


@leaking
def leak_index_put(x: Any) -> Any:
    e = x.new_empty(2, 2)
    e[torch.tensor([0, 1]), torch.tensor([1, 0])] = x[0, :2]
    return e


@leaking
def leak_index_added(x: Any) -> Any:
    e = x.new_empty(4)
    return e.index_put((torch.tensor([0, 1, 2, 3]),), x[0], accumulate=True)


@leaking
def leak_index_of_caller(x: Any) -> Any:
    e = x.new_empty(4, 4)
    e[x.abs().sum(1).to(torch.int64) % 4] = x
    return e


@leaking
def leak_index_value(x: Any) -> Any:
    e = x.new_empty(4)
    return e.index_put((torch.tensor([0, 1, 2, 3]),), torch.empty(4))
