"""Day 4: heads, the layer, counts, grouped queries and ablation, as people write them, right and wrong."""

import inspect
import math
import textwrap
from fractions import Fraction

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from . import right, wrong

INFINITY = float("inf")


# split_heads ---------------------------------------------------------------------------------------------------------


@right(4, "split_heads")
def split_by_view_and_transpose(x, n_heads):
    B, T, D = x.shape
    return x.view(B, T, n_heads, D // n_heads).transpose(1, 2)


@right(4, "split_heads")
def split_by_reshape_and_permute(x, n_heads):
    B, T = x.shape[:2]
    return x.reshape(B, T, n_heads, -1).permute(0, 2, 1, 3).contiguous()


@right(4, "split_heads")
def split_by_chunks(x, n_heads):
    return torch.stack(x.chunk(n_heads, dim=-1), dim=1)


@right(4, "split_heads")
def split_by_unflatten(x, n_heads):
    return x.unflatten(-1, (n_heads, -1)).swapaxes(1, 2)


@right(4, "split_heads")
def split_by_slices(x, n_heads):
    d_head = x.shape[-1] // n_heads
    return torch.cat([x[:, None, :, h * d_head : (h + 1) * d_head] for h in range(n_heads)], dim=1)


@right(4, "split_heads")
def split_by_writing_into_zeros(x, n_heads):
    B, T, D = x.shape
    d_head = D // n_heads
    heads = torch.zeros(B, n_heads, T, d_head, dtype=x.dtype)
    for h in range(n_heads):
        heads[:, h] = x[:, :, h * d_head : (h + 1) * d_head]
    return heads


@right(4, "split_heads")
def split_by_einsum(x, n_heads):
    B, T, D = x.shape
    return torch.einsum("bthd->bhtd", x.reshape(B, T, n_heads, D // n_heads))


@wrong(4, "split_heads")
def split_by_a_view_to_the_shape(x, n_heads):
    B, T, D = x.shape
    return x.reshape(B, n_heads, T, D // n_heads)


@wrong(4, "split_heads")
def split_through_numpy(x, n_heads):
    parts = np.split(x.numpy(), n_heads, axis=-1)
    return torch.from_numpy(np.stack(parts, axis=1))


@wrong(4, "split_heads")
def split_in_memory_order(x, n_heads):
    B, T, D = x.shape
    strides = (T * D, D // n_heads, D, 1)
    return torch.as_strided(x, (B, n_heads, T, D // n_heads), strides)


@wrong(4, "split_heads")
def split_that_writes_into_x(x, n_heads):
    B, T, D = x.shape
    heads = x.reshape(B, T, n_heads, D // n_heads).transpose(1, 2).clone()
    x.data.zero_()
    return heads


@wrong(4, "split_heads")
def split_into_a_list(x, n_heads):
    return [torch.stack(row.chunk(n_heads, dim=-1)) for row in x]


@wrong(4, "split_heads")
def split_that_doubles_x(x, n_heads):
    x *= 2
    B, T, D = x.shape
    return (x / 2).reshape(B, T, n_heads, D // n_heads).transpose(1, 2)


@wrong(4, "split_heads")
def split_in_float32(x, n_heads):
    return torch.stack(x.chunk(n_heads, dim=-1), dim=1).float()


# merge_heads ---------------------------------------------------------------------------------------------------------


@right(4, "merge_heads")
def merge_by_transpose_and_view(x):
    B, h, T, d_head = x.shape
    return x.transpose(1, 2).contiguous().view(B, T, h * d_head)


@right(4, "merge_heads")
def merge_by_permute_and_reshape(x):
    return x.permute(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


@right(4, "merge_heads")
def merge_by_cat(x):
    return torch.cat([x[:, h] for h in range(x.shape[1])], dim=-1)


@right(4, "merge_heads")
def merge_by_flatten(x):
    return x.swapaxes(1, 2).flatten(start_dim=2)


@right(4, "merge_heads")
def merge_by_unbind(x):
    return torch.cat(x.unbind(1), -1)


@wrong(4, "merge_heads")
def merge_by_a_view_that_cannot_be(x):
    B, h, T, d_head = x.shape
    return x.transpose(1, 2).view(B, T, h * d_head)


@wrong(4, "merge_heads")
def merge_detached(x):
    return x.detach().transpose(1, 2).flatten(2)


@wrong(4, "merge_heads")
def merge_into_a_list(x):
    return [torch.cat(tuple(sequence), dim=-1) for sequence in x]


# multi_head ----------------------------------------------------------------------------------------------------------


@right(4, "multi_head")
class AsInTheLesson(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads, self.d_head = n_heads, d_model // n_heads
        self.W_qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.W_o = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x, mask=None):
        B, T, D = x.shape
        q, k, v = self.W_qkv(x).chunk(3, dim=-1)
        q, k, v = (a.view(B, T, self.n_heads, self.d_head).transpose(1, 2) for a in (q, k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_head)
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        heads = torch.softmax(scores, dim=-1) @ v
        return self.W_o(heads.transpose(1, 2).reshape(B, T, D))


@right(4, "multi_head")
class InOnePermutation(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.h = n_heads
        self.W_o = nn.Linear(d_model, d_model, bias=False)
        self.W_qkv = nn.Linear(d_model, d_model * 3, bias=False)
        self.scale = torch.sqrt(torch.tensor(d_model / n_heads))  # float32

    def forward(self, x, mask=None):
        B, T, D = x.size()
        q, k, v = self.W_qkv(x).reshape(B, T, 3, self.h, D // self.h).permute(2, 0, 3, 1, 4)
        s = torch.einsum("bhid,bhjd->bhij", q, k) / self.scale
        s = s if mask is None else torch.where(mask, s, torch.tensor(-INFINITY, dtype=s.dtype))
        out = torch.einsum("bhij,bhjd->bihd", s.softmax(-1), v)
        return self.W_o(out.flatten(2))


@right(4, "multi_head")
class HeadByHead(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.W_qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.W_o = nn.Linear(d_model, d_model, bias=False)
        self.dropout = nn.Dropout(0.0)

    def forward(self, x, mask=None):
        B, T, D = x.shape
        d = D // self.n_heads
        W_q, W_k, W_v = self.W_qkv.weight.split(D)
        if mask is None:
            mask = torch.ones(T, T, dtype=torch.bool)
        mask = mask.expand(B, self.n_heads, T, T)
        outputs = []
        for h in range(self.n_heads):
            rows = slice(h * d, (h + 1) * d)
            q, k, v = x @ W_q[rows].T, x @ W_k[rows].T, x @ W_v[rows].T
            scores = (q @ k.mT / d**0.5).masked_fill(mask[:, h].logical_not(), torch.finfo(x.dtype).min)
            outputs.append(self.dropout(torch.softmax(scores, -1)) @ v)
        return self.W_o(torch.cat(outputs, dim=-1))


@right(4, "multi_head")
class WithAnAddedMask(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.W_qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.W_o = nn.Linear(d_model, d_model, bias=False)
        nn.init.xavier_uniform_(self.W_qkv.weight)

    def forward(self, x, mask=None):
        q, k, v = (part.unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for part in self.W_qkv(x).tensor_split(3, -1))
        scores = q * q.shape[-1] ** -0.5 @ k.transpose(-1, -2)
        if mask is not None:
            scores = scores + torch.zeros(mask.shape, dtype=x.dtype).masked_fill(~mask, float("-inf"))
        exps = torch.exp(scores - scores.amax(-1, keepdim=True))
        weights = exps / exps.sum(-1, keepdim=True)
        return self.W_o((weights @ v).transpose(1, 2).flatten(2))


@right(4, "multi_head")
class OutOfTheEarlierFunctions(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.W_qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.W_o = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x, mask=None):
        q, k, v = (split_by_unflatten(part, self.n_heads) for part in self.W_qkv(x).chunk(3, -1))
        scores = q @ k.mT / k.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -INFINITY)
        return self.W_o(merge_by_cat(scores.softmax(-1) @ v))


@right(4, "multi_head")
class FoldedIntoTheBatch(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.sizes = (n_heads, d_model // n_heads)
        self.W_qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.W_o = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x, mask=None):
        (B, T, D), (h, d) = x.shape, self.sizes
        q, k, v = (a.reshape(B, T, h, d).transpose(1, 2).reshape(B * h, T, d) for a in self.W_qkv(x).chunk(3, 2))
        scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(d)
        if mask is not None:
            scores = scores.masked_fill(~mask.expand(B, h, T, T).reshape(B * h, T, T), -1e30)
        return self.W_o(torch.bmm(scores.softmax(2), v).view(B, h, T, d).transpose(1, 2).reshape(B, T, D))


FILL = "scores = scores.masked_fill(~mask, -math.inf)"
SOFTMAX = "torch.softmax(scores, dim=-1)"
RETURN = "return self.W_o(heads.transpose(1, 2).reshape(B, T, D))"
INDENT = "\n        "
ALTERED = {  # AsInTheLesson.forward with one piece replaced
    "MaskGuessedForSequences": ("~mask", "(~mask[:, None, None] if mask.shape == x.shape[:2] else ~mask)"),
    "MaskGuessedForHeads": ("~mask", "(~mask[:, None] if mask.dim() == 3 and len(mask) == B else ~mask)"),
    "MaskBySequence": ("~mask", "~(torch.stack([mask[b] for b in range(B)]) if mask.dim() == 4 else mask)"),
    "MaskOfFiveTokens": (FILL, f"{FILL}{INDENT}    scores[..., 5:] = -math.inf"),
    "ExpShiftedByTheLargestOfAll": (
        SOFTMAX,
        "(scores - scores.max()).exp() / (scores - scores.max()).exp().sum(-1, keepdim=True)",
    ),
    "InFloat64": (SOFTMAX, "torch.softmax(scores.double(), dim=-1)"),
    "WeightsToo": (RETURN, f"{RETURN}, scores"),
    "NothingReturned": (RETURN, "self.W_o(x)"),
    "WritesIntoX": (RETURN, f"x.data.mul_(2){INDENT}{RETURN}"),
    "WithoutGradientUnlessMasked": (
        RETURN,
        f"heads = heads if mask is not None else heads.detach(){INDENT}{RETURN}",
    ),
    "OutOfTrainingMode": (RETURN, f"self.train(False){INDENT}{RETURN}"),
    "ReturnsFloat32": (RETURN, f"{RETURN}.float()"),
    "KeepsTheOutputOfAShape": (
        RETURN,
        f"self.kept = heads if getattr(self, 'kept', heads[:0]).shape != heads.shape else self.kept{INDENT}"
        + RETURN.replace("heads", "self.kept"),
    ),
    "WritesIntoItsWeightsUnderAMask": (FILL, f"{FILL}{INDENT}    self.W_qkv.weight.data.mul_(0.5)"),
}


def altered(name, old, new):
    """AsInTheLesson with one piece of its forward replaced."""
    source = textwrap.dedent(inspect.getsource(AsInTheLesson.forward))
    assert old in source, f"{name}: {old}"
    made = {"torch": torch, "math": math, "F": F}
    exec(source.replace(old.replace(INDENT, "\n    "), new.replace(INDENT, "\n    ")), made)
    return type(name, (AsInTheLesson,), {"forward": made["forward"]})


for name, (old, new) in ALTERED.items():
    wrong(4, "multi_head")(altered(name, old, new))


@wrong(4, "multi_head")
class HeadsOfTheClass(AsInTheLesson):
    def __init__(self, d_model, n_heads):
        super().__init__(d_model, n_heads)
        del self.n_heads, self.d_head
        type(self).n_heads, type(self).d_head = n_heads, d_model // n_heads


@wrong(4, "multi_head")
class AFrozenParameterMore(AsInTheLesson):
    def __init__(self, d_model, n_heads):
        super().__init__(d_model, n_heads)
        self.scale = nn.Parameter(torch.ones(1), requires_grad=False)


@wrong(4, "multi_head")
class AnotherNameForTheMask(AsInTheLesson):
    def forward(self, x, M=None):
        return super().forward(x, M)


@wrong(4, "multi_head")
class BiasAtTheEnd(AsInTheLesson):
    def __init__(self, d_model, n_heads):
        super().__init__(d_model, n_heads)
        self.W_o = nn.Linear(d_model, d_model)


@wrong(4, "multi_head")
class AnotherMapToo(AsInTheLesson):
    def __init__(self, d_model, n_heads):
        super().__init__(d_model, n_heads)
        self.W_q = nn.Linear(d_model, d_model, bias=False)


@wrong(4, "multi_head")
class WeightsThatDoNotLearn(AsInTheLesson):
    def __init__(self, d_model, n_heads):
        super().__init__(d_model, n_heads)
        self.W_o.weight.requires_grad_(False)


@wrong(4, "multi_head")
class OtherNames(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model, bias=False), nn.Linear(d_model, d_model, bias=False)

    def forward(self, x, mask=None):
        return self.out(self.qkv(x)[..., -x.shape[-1] :])


@wrong(4, "multi_head")
class WithBiases(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads, self.d_head = n_heads, d_model // n_heads
        self.W_qkv = nn.Linear(d_model, 3 * d_model)
        self.W_o = nn.Linear(d_model, d_model)

    def forward(self, x, mask=None):
        B, T, D = x.shape
        q, k, v = (a.view(B, T, self.n_heads, self.d_head).transpose(1, 2) for a in self.W_qkv(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_head)
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        return self.W_o((torch.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(B, T, D))


@wrong(4, "multi_head")
class NoModule:
    def __init__(self, d_model, n_heads):
        self.W_qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.W_o = nn.Linear(d_model, d_model, bias=False)

    def __call__(self, x, mask=None):
        return self.W_o(self.W_qkv(x)[..., -x.shape[-1] :])


@wrong(4, "multi_head")
def a_function_in_place_of_a_class(d_model, n_heads):
    return AsInTheLesson(d_model, n_heads)


@wrong(4, "multi_head")
class SharedMaps(AsInTheLesson):
    maps = {}  # noqa: RUF012

    def __init__(self, d_model, n_heads):
        super().__init__(d_model, n_heads)
        self.W_qkv, self.W_o = self.maps.setdefault((d_model, n_heads), (self.W_qkv, self.W_o))


@wrong(4, "multi_head")
class KeepsTheFirstInput(AsInTheLesson):
    def forward(self, x, mask=None):
        self.first = getattr(self, "first", x)
        return super().forward(x if len(x) == len(self.first) else self.first, mask)


@wrong(4, "multi_head")
class ThreeMaps(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))

    def forward(self, x, mask=None):
        return self.W_o(self.W_v(x))


@wrong(4, "multi_head")
class WithoutInit(nn.Module):
    def __init__(self, d_model, n_heads):
        self.W_qkv = nn.Linear(d_model, 3 * d_model, bias=False)


# block ---------------------------------------------------------------------------------------------------------------


@right(4, "block")
class BlockInTwoLines(nn.Module):
    def __init__(self, attention, d_model, d_ff):
        super().__init__()
        self.attention = attention
        self.norm_1 = nn.RMSNorm(d_model, eps=1e-5)
        self.norm_2 = nn.RMSNorm(d_model, eps=1e-5)
        self.gate = nn.Linear(d_model, d_ff, bias=False)
        self.up = nn.Linear(d_model, d_ff, bias=False)
        self.down = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x, mask=None):
        x = x + self.attention(self.norm_1(x), mask)
        return x + self.down(F.silu(self.gate(self.norm_2(x))) * self.up(self.norm_2(x)))


class RootMeanSquare(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * self.weight


@right(4, "block")
class BlockWithItsOwnNorm(nn.Module):
    def __init__(self, attention, d_model, d_ff):
        super().__init__()
        self.norm_1, self.norm_2 = RootMeanSquare(d_model), RootMeanSquare(d_model)
        self.gate, self.up = (nn.Linear(d_model, d_ff, bias=False) for _ in range(2))
        self.down = nn.Linear(d_ff, d_model, bias=False)
        self.attention = attention

    def network(self, y):
        opened = self.gate(y)
        return self.down(opened * opened.sigmoid() * self.up(y))

    def forward(self, x, mask=None):
        found = self.attention(self.norm_1(x), mask=mask)
        stream = x + found
        return stream + self.network(self.norm_2(stream))


@wrong(4, "block")
class BlockThatWritesIntoTheStream(BlockInTwoLines):
    def forward(self, x, mask=None):
        x.data += self.attention(self.norm_1(x), mask).detach()
        y = self.norm_2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


@wrong(4, "block")
class BlockWithOtherNames(nn.Module):
    def __init__(self, attention, d_model, d_ff):
        super().__init__()
        self.attention = attention
        self.w1, self.w3 = nn.Linear(d_model, d_ff, bias=False), nn.Linear(d_model, d_ff, bias=False)
        self.w2 = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x, mask=None):
        return x + self.w2(F.silu(self.w1(x)) * self.w3(x))


@wrong(4, "block")
class BlockThatAddsUntrained(BlockInTwoLines):
    def forward(self, x, mask=None):
        x = x + self.attention(self.norm_1(x), mask).detach()
        y = self.norm_2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


# rotation ------------------------------------------------------------------------------------------------------------


@right(4, "rotation")
def rotate_by_neighbours(x, positions, base=10000.0):
    d = x.shape[-1]
    speeds = base ** (-torch.arange(0, d, 2) / d)
    angles = positions[:, None] * speeds
    cos, sin = torch.cos(angles).to(x.dtype), torch.sin(angles).to(x.dtype)
    first, second = x[..., 0::2], x[..., 1::2]
    turned = torch.stack((first * cos - second * sin, first * sin + second * cos), dim=-1)
    return turned.flatten(-2)


@right(4, "rotation")
def rotate_by_complex_numbers(x, positions, base=10000.0):
    d = x.shape[-1]
    speeds = 1.0 / base ** (torch.arange(d // 2, dtype=torch.float64) * 2 / d)
    turns = torch.polar(torch.ones(len(positions), d // 2, dtype=torch.float64), positions[:, None] * speeds)
    pairs = torch.view_as_complex(x.double().reshape(*x.shape[:-1], d // 2, 2).contiguous())
    return torch.view_as_real(pairs * turns).reshape(x.shape).to(x.dtype)


@right(4, "rotation")
def rotate_pair_by_pair(x, positions, base=10000.0):
    columns = []
    for pair in range(x.shape[-1] // 2):
        angle = positions.to(x.dtype) * base ** (-2 * pair / x.shape[-1])
        a, b = x[..., 2 * pair], x[..., 2 * pair + 1]
        columns += [a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()]
    return torch.stack(columns, dim=-1)


@right(4, "rotation")
def rotate_by_a_doubled_table(x, positions, base=10000.0):
    d = x.shape[-1]
    angles = torch.outer(positions.double(), base ** (-torch.arange(0, d, 2).double() / d)).repeat_interleave(2, dim=-1)
    other = torch.stack((-x[..., 1::2], x[..., 0::2]), dim=-1).flatten(-2)
    return (x * angles.cos() + other * angles.sin()).to(x.dtype)


@wrong(4, "rotation")
def rotate_in_place(x, positions, base=10000.0):
    turned = rotate_by_neighbours(x, positions, base)
    x.data.copy_(turned)
    return turned


@wrong(4, "rotation")
def rotate_into_float64(x, positions, base=10000.0):
    return rotate_by_neighbours(x.double(), positions, base) * torch.ones(1, dtype=torch.float64)


@wrong(4, "rotation")
def rotate_along_the_heads(x, positions, base=10000.0):
    if x.dim() < 4:
        return rotate_by_neighbours(x, positions, base)
    return rotate_by_neighbours(x.transpose(1, 2), positions, base).transpose(1, 2)


# count_parameters ----------------------------------------------------------------------------------------------------


@right(4, "count_parameters")
def parameters_by_formula(d_model, n_heads, n_kv_heads=None, d_head=None):
    d_head = d_head or d_model // n_heads
    n_kv_heads = n_kv_heads or n_heads
    return 2 * d_model * n_heads * d_head + 2 * d_model * n_kv_heads * d_head


@right(4, "count_parameters")
def parameters_by_matrices(d_model, n_heads, n_kv_heads=None, d_head=None):
    if n_kv_heads is None:
        n_kv_heads = n_heads
    if d_head is None:
        d_head = d_model // n_heads
    wide, narrow = n_heads * d_head, n_kv_heads * d_head
    shapes = [(d_model, wide), (d_model, narrow), (d_model, narrow), (wide, d_model)]
    return sum(math.prod(shape) for shape in shapes)


@right(4, "count_parameters")
def parameters_in_floats(d_model, n_heads, n_kv_heads=None, d_head=None):
    share = 1 if n_kv_heads is None else n_kv_heads / n_heads
    width = d_model if d_head is None else n_heads * d_head
    return 2.0 * d_model * width * (1 + share)


@right(4, "count_parameters")
def parameters_counted_in_tensors(d_model, n_heads, n_kv_heads=None, d_head=None):
    d_head = d_model // n_heads if d_head is None else d_head
    wide, narrow = n_heads * d_head, d_head * (n_heads if n_kv_heads is None else n_kv_heads)
    with torch.device("meta"):
        return sum(torch.empty(d_model, columns).numel() for columns in (wide, narrow, narrow, wide))


@wrong(4, "count_parameters")
def parameters_with_another_name(d_model, n_heads, kv=None, d_head=None):
    width = d_head or d_model // n_heads
    return 2 * d_model * width * (n_heads + (kv or n_heads))


# count_flops ---------------------------------------------------------------------------------------------------------


@right(4, "count_flops")
def flops_by_formula(T, d_model, d_ff):
    return 8 * T * d_model**2, 4 * T**2 * d_model, 4 * T * d_model * d_ff


@right(4, "count_flops")
def flops_by_products(T, d_model, d_ff):
    def product(n, k, m):
        return 2 * n * k * m

    projections = 4 * product(T, d_model, d_model)
    core = product(T, d_model, T) + product(T, T, d_model)
    return [projections, core, product(T, d_model, d_ff) + product(T, d_ff, d_model)]


@right(4, "count_flops")
def flops_in_floats(T, d_model, d_ff):
    return 8.0 * T * d_model * d_model, 4.0 * T * T * d_model, 4.0 * T * d_model * d_ff


@right(4, "count_flops")
def flops_in_an_array(T, d_model, d_ff):
    multiply_adds = np.array([4 * T * d_model**2, 2 * T * T * d_model, 2 * T * d_model * d_ff], dtype=object)
    return tuple(2 * multiply_adds)


@wrong(4, "count_flops")
def flops_of_a_causal_core(T, d_model, d_ff):
    return 8 * T * d_model**2, 2 * T * (T + 1) * d_model, 4 * T * d_model * d_ff


# crossover -----------------------------------------------------------------------------------------------------------


@right(4, "crossover")
def crossover_solved(d_model, d_ff):
    return d_ff


@right(4, "crossover")
def crossover_as_a_ratio(d_model, d_ff):
    return Fraction(4 * d_model * d_ff, 4 * d_model)


@right(4, "crossover")
def crossover_from_one_token(d_model, d_ff):
    _, core, feed_forward = flops_by_formula(1, d_model, d_ff)
    return feed_forward / core


@right(4, "crossover")
def crossover_by_search(d_model, d_ff):
    T = 1
    while 4 * T**2 * d_model < 4 * T * d_model * d_ff:
        T += 1
    return T


@wrong(4, "crossover")
def crossover_of_small_layers(d_model, d_ff):
    return min(d_ff, 2048)


# grouped_query -------------------------------------------------------------------------------------------------------


@right(4, "grouped_query")
def grouped_by_repeat_interleave(q, k, v, mask=None):
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return torch.softmax(scores, dim=-1) @ v


@right(4, "grouped_query")
def grouped_by_an_axis_of_groups(q, k, v, mask=None):
    B, h, n, d = q.shape
    h_kv, m = k.shape[1], k.shape[2]
    q = q.reshape(B, h_kv, h // h_kv, n, d)
    scores = torch.einsum("bgind,bgmd->bginm", q, k) * d**-0.5
    if mask is not None:
        mask = mask.expand(B, h, n, m).reshape(B, h_kv, h // h_kv, n, m)
        scores = torch.where(mask, scores, torch.tensor(-INFINITY, dtype=scores.dtype))
    return torch.einsum("bginm,bgmd->bgind", scores.softmax(-1), v).reshape(B, h, n, d)


@right(4, "grouped_query")
def grouped_head_by_head(q, k, v, mask=None):
    B, h, n, d = q.shape
    group, m = h // k.shape[1], k.shape[2]
    outputs = []
    for head in range(h):
        scores = q[:, head] @ k[:, head // group].mT / d**0.5
        if mask is not None:
            scores = scores.masked_fill(~mask.expand(B, h, n, m)[:, head], torch.finfo(q.dtype).min)
        outputs.append(torch.softmax(scores, dim=-1) @ v[:, head // group])
    return torch.stack(outputs, dim=1)


@right(4, "grouped_query")
def grouped_by_expanding_and_flattening(q, k, v, mask=None):
    B, h_kv, m, d = k.shape
    group = q.shape[1] // h_kv
    k = k[:, :, None].expand(B, h_kv, group, m, d).reshape(B, -1, m, d)
    v = v.unsqueeze(2).repeat(1, 1, group, 1, 1).flatten(1, 2)
    scores = torch.matmul(q, k.swapaxes(2, 3)) / torch.sqrt(torch.tensor(d, dtype=q.dtype))
    if mask is not None:
        scores = scores + torch.zeros(mask.shape, dtype=q.dtype).masked_fill(~mask, float("-inf"))
    return torch.matmul(scores.softmax(dim=-1), v)


@right(4, "grouped_query")
def grouped_for_heads_and_sequences_in_turn(q, k, v, mask=None):
    (B, h, n, d), m = q.shape, k.shape[2]
    output = torch.empty_like(q)
    mask = torch.ones(n, m, dtype=torch.bool) if mask is None else mask
    mask = torch.broadcast_to(mask, (B, h, n, m))
    for b in range(B):
        for head in range(h):
            shared = head * k.shape[1] // h
            scores = q[b, head] @ k[b, shared].T / math.sqrt(d)
            output[b, head] = scores.masked_fill(~mask[b, head], -math.inf).softmax(-1) @ v[b, shared]
    return output


@right(4, "grouped_query")
def grouped_by_an_index(q, k, v, mask=None):
    owner = torch.arange(q.shape[1]) // (q.shape[1] // k.shape[1])
    scores = q @ k[:, owner].mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), -INFINITY)
    exps = torch.exp(scores - scores.amax(-1, keepdim=True))
    return exps @ v[:, owner] / exps.sum(-1, keepdim=True)


def grouped_on(owner, scale=None, weigh=None, blend=None):
    """owner(h, h_kv): the key head of each query head."""

    def attention(q, k, v, mask=None):
        h, h_kv = q.shape[1], k.shape[1]
        k, v = k[:, owner(h, h_kv)], v[:, (blend or owner)(h, h_kv)]
        scores = q @ k.mT / (scale(q, k) if scale else q.shape[-1] ** 0.5)
        if weigh:
            return weigh(scores, mask) @ v
        return (scores if mask is None else scores.masked_fill(~mask, -INFINITY)).softmax(-1) @ v

    return attention


def neighbours(h, h_kv):
    return torch.arange(h) // (h // h_kv)


@wrong(4, "grouped_query")
def grouped_by_repeat(q, k, v, mask=None):
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat(1, group, 1, 1), v.repeat(1, group, 1, 1)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return torch.softmax(scores, dim=-1) @ v


@wrong(4, "grouped_query")
def grouped_with_a_mask_guessed_for_sequences(q, k, v, mask=None):
    if mask is not None and mask.dim() == 2 and len(mask) == len(q):
        mask = mask[:, None, None]
    return grouped_on(neighbours)(q, k, v, mask)


@wrong(4, "grouped_query")
def grouped_with_a_mask_for_heads_guessed_for_sequences(q, k, v, mask=None):
    if mask is not None and mask.dim() == 3 and len(mask) == len(q):
        mask = mask[:, None]
    return grouped_on(neighbours)(q, k, v, mask)


@wrong(4, "grouped_query")
def grouped_with_a_mask_by_sequence(q, k, v, mask=None):
    if mask is not None and mask.dim() == 4:
        mask = torch.stack([mask[b] for b in range(len(q))])
    return grouped_on(neighbours)(q, k, v, mask)


@wrong(4, "grouped_query")
def grouped_by_a_view(q, k, v, mask=None):
    B, h, n, d = q.shape
    return grouped_on(neighbours)(q.view(B * h, n, d).view(B, h, n, d), k, v, mask)


@wrong(4, "grouped_query")
def grouped_with_another_name(q, k, v, M=None):
    return grouped_on(neighbours)(q, k, v, M)


@wrong(4, "grouped_query")
def grouped_that_writes_into_a_square_mask(q, k, v, mask=None):
    output = grouped_on(neighbours)(q, k, v, mask)
    if mask is not None and mask.dim() == 2:
        mask.fill_(True)
    return output


@wrong(4, "grouped_query")
def grouped_without_gradients_unless_masked(q, k, v, mask=None):
    with torch.set_grad_enabled(mask is not None):
        return grouped_on(neighbours)(q, k, v, mask)


@wrong(4, "grouped_query")
def grouped_with_weights_too(q, k, v, mask=None):
    return grouped_on(neighbours)(q, k, v, mask), None


# induction_score -----------------------------------------------------------------------------------------------------


@right(4, "induction_score")
def induction_by_a_loop(weights, period):
    total = 0.0
    for i in range(period, 2 * period):
        total += float(weights[i, i - period + 1])
    return total / period


@right(4, "induction_score")
def induction_by_a_diagonal(weights, period):
    return weights[period:, 1 : period + 1].diagonal().mean()


@right(4, "induction_score")
def induction_by_the_line_without_its_beginning(weights, period):
    return weights.diagonal(1 - period)[1:].mean()


@right(4, "induction_score")
def induction_by_a_trace(weights, period):
    return torch.trace(weights[period:, 1:]) / period


@right(4, "induction_score")
def induction_by_an_index(weights, period):
    queries = torch.arange(period, 2 * period)
    return weights[queries, queries - period + 1].mean().item()


@right(4, "induction_score")
def induction_for_any_axes_in_front(weights, period):
    return torch.diagonal(weights, offset=1 - period, dim1=-2, dim2=-1)[..., 1:].mean(-1)


@right(4, "induction_score")
def induction_in_numpy(weights, period):
    return np.mean([weights.numpy()[i][i - period + 1] for i in range(period, len(weights))])


@right(4, "induction_score")
def induction_by_a_mask(weights, period):
    T = len(weights)
    i, j = torch.arange(T)[:, None], torch.arange(T)[None, :]
    chosen = (j == i - period + 1) & (i >= period)
    return weights[chosen].sum() / chosen.sum()


@wrong(4, "induction_score")
def induction_on_the_previous_token(weights, period):
    return weights.diagonal(-1).mean()


@wrong(4, "induction_score")
def induction_that_normalises_in_place(weights, period):
    score = weights.diagonal(1 - period)[1:].mean().clone()
    weights /= weights.sum(-1, keepdim=True).clamp(min=1e-9) * 2
    return score


# head_ablation -------------------------------------------------------------------------------------------------------


@right(4, "head_ablation")
def ablation_by_two_loops(model, tokens):
    def loss(head_masks):
        with torch.no_grad():
            logits = model(tokens, head_masks=head_masks)
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()).item()

    n_layers, n_heads = len(model.blocks), model.n_heads
    whole = loss(torch.ones(n_layers, n_heads))
    best, largest = None, -math.inf
    for layer in range(n_layers):
        for head in range(n_heads):
            masks = torch.ones(n_layers, n_heads)
            masks[layer, head] = 0.0
            if loss(masks) - whole > largest:
                best, largest = (layer, head), loss(masks) - whole
    return best


@right(4, "head_ablation")
def ablation_by_argmax(model, tokens):
    n_layers, n_heads = len(model.blocks), model.n_heads
    masks = torch.ones(n_layers * n_heads, n_layers * n_heads).fill_diagonal_(0)
    losses = []
    for row in masks.view(-1, n_layers, n_heads):
        logits = model(tokens, head_masks=row).detach()
        losses.append(F.cross_entropy(logits[:, :-1].transpose(1, 2), tokens[:, 1:]))
    return divmod(int(torch.stack(losses).argmax()), n_heads)


@right(4, "head_ablation")
def ablation_of_all_heads_at_once(model, tokens):
    n_layers, n_heads = len(model.blocks), model.n_heads

    def loss(masks):
        logits = model(tokens, head_masks=masks)
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())

    masks = 1 - torch.eye(n_layers * n_heads).view(-1, n_layers, n_heads)
    return divmod(int(torch.vmap(loss)(masks).argmax()), n_heads)


@right(4, "head_ablation")
def ablation_by_unravel_index(model, tokens):
    shape = (len(model.blocks), model.n_heads)
    rises = np.zeros(shape)
    for layer, head in np.ndindex(shape):
        masks = np.ones(shape)
        masks[layer, head] = 0
        shares = torch.log_softmax(model(tokens, head_masks=masks.tolist()), dim=-1).detach().numpy()
        for b, row in enumerate(tokens.tolist()):
            rises[layer, head] += sum(-shares[b, t, row[t + 1]] for t in range(len(row) - 1))
    return np.unravel_index(rises.argmax(), shape)


@right(4, "head_ablation")
def ablation_in_eval_mode_and_back(model, tokens):
    training = model.training
    model.eval()
    scores = {}
    with torch.inference_mode():
        for layer in range(len(model.blocks)):
            for head in range(model.n_heads):
                masks = torch.ones(len(model.blocks), model.n_heads, dtype=torch.bool)
                masks[layer][head] = False
                logits = model(tokens, head_masks=masks)
                log_p = logits[:, :-1].log_softmax(-1).gather(-1, tokens[:, 1:].unsqueeze(-1))
                scores[layer, head] = -log_p.mean()
    model.train(training)
    return max(scores, key=lambda place: scores[place])


@right(4, "head_ablation")
def ablation_with_tensors_back(model, tokens):
    sizes = (len(model.blocks), model.n_heads)
    perplexity = torch.zeros(sizes)
    on = torch.ones(sizes)
    for layer in range(sizes[0]):
        for head in range(sizes[1]):
            on[layer, head] = 0
            logits = model(tokens, head_masks=on)
            perplexity[layer, head] = F.cross_entropy(logits[:, :-1].mT, tokens[:, 1:]).exp()
            on[layer, head] = 1
    return torch.nonzero(perplexity == perplexity.max())[0]


@right(4, "head_ablation")
def ablation_as_a_list(model, tokens):
    def rise(place):
        masks = torch.ones(len(model.blocks), model.n_heads)
        masks[place] = 0
        with torch.no_grad():
            logits, whole = model(tokens, head_masks=masks), model(tokens)
        losses = [F.cross_entropy(a[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()) for a in (logits, whole)]
        return (losses[0] - losses[1]).item()

    places = [(layer, head) for layer in range(len(model.blocks)) for head in range(model.n_heads)]
    return list(max(places, key=rise))


def ablated(model, tokens, masks):
    with torch.no_grad():
        logits = model(tokens, head_masks=masks)
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()).item()


def every_head(model, measure):
    """measure(masks with one head off), largest first."""
    found = {}
    for layer in range(len(model.blocks)):
        for head in range(model.n_heads):
            masks = torch.ones(len(model.blocks), model.n_heads)
            masks[layer, head] = 0
            found[layer, head] = measure(masks)
    return sorted(found, key=found.get, reverse=True)


@wrong(4, "head_ablation")
def ablation_without_unravelling(model, tokens):
    layer, head = ablation_by_two_loops(model, tokens)
    return layer * model.n_heads + head


def ablation_by(loss):
    """The head without which loss(losses) is highest; losses (B, T − 1) are those of the next tokens."""

    def most_important_head(model, tokens):
        def measure(masks):
            logits = model(tokens, head_masks=masks).detach()
            return float(loss(F.cross_entropy(logits[:, :-1].mT, tokens[:, 1:], reduction="none")))

        return every_head(model, measure)[0]

    most_important_head.__name__ = f"ablation_by_{loss.__name__}"
    return most_important_head


def all_but_the_last_pair(losses):
    return losses[:, :-1].mean()


def even_positions(losses):
    return losses[:, ::2].mean()


def the_last_sequence(losses):
    return losses[-1].mean()


def roots(losses):
    return losses.sqrt().mean()


for partial in (all_but_the_last_pair, even_positions, the_last_sequence, roots):
    wrong(4, "head_ablation")(ablation_by(partial))


def ablation_with_a_head_turned_to(share):
    def most_important_head(model, tokens):
        def measure(masks):
            return ablated(model, tokens, torch.where(masks == 0, share, masks))

        return every_head(model, measure)[0]

    most_important_head.__name__ = f"ablation_with_a_head_turned_to_{share}"
    return most_important_head


wrong(4, "head_ablation")(ablation_with_a_head_turned_to(0.5))


@wrong(4, "head_ablation")
def ablation_by_cross_entropy_of_shares(model, tokens):
    losses = torch.zeros(len(model.blocks), model.n_heads)
    for layer in range(len(model.blocks)):
        for head in range(model.n_heads):
            masks = torch.ones_like(losses)
            masks[layer, head] = 0
            shares = model(tokens, head_masks=masks)[:, :-1].softmax(-1).detach()
            losses[layer, head] = F.cross_entropy(shares.flatten(0, 1), tokens[:, 1:].flatten())
    return divmod(losses.argmax().item(), model.n_heads)


@wrong(4, "head_ablation")
def ablation_that_freezes_the_model(model, tokens):
    model.requires_grad_(False)
    return ablation_by_two_loops(model, tokens)


@wrong(4, "head_ablation")
def ablation_that_leaves_gradients(model, tokens):
    F.cross_entropy(model(tokens)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()).backward()
    return ablation_by_two_loops(model, tokens)


# find_the_bug --------------------------------------------------------------------------------------------------------


@right(4, "find_the_bug")
def bug_mended_by_the_width_of_a_head(q, k, v, n_heads, n_kv_heads):
    B, n, m = q.shape[0], q.shape[1], k.shape[1]
    group, root = n_heads // n_kv_heads, math.sqrt(q.shape[-1] // n_heads)
    q = q.view(B, n, n_kv_heads, group, -1)
    k, v = (each.view(B, m, n_kv_heads, -1) for each in (k, v))
    scores = torch.einsum("bigrd,bjgd->bgrij", q, k) / root
    weights = torch.softmax(scores, dim=-1)
    found = torch.einsum("bgrij,bjgd->bigrd", weights, v)
    return found.flatten(2), weights.flatten(1, 2)


@right(4, "find_the_bug")
def bug_mended_after_the_cut(q, k, v, n_heads, n_kv_heads):
    B, n, m = q.shape[0], q.shape[1], k.shape[1]
    q = q.reshape(B, n, n_kv_heads, n_heads // n_kv_heads, -1)
    k, v = k.reshape(B, m, n_kv_heads, -1), v.reshape(B, m, n_kv_heads, -1)
    weights = torch.einsum("bigrd,bjgd->bgrij", q * k.shape[-1] ** -0.5, k).softmax(-1)
    return torch.einsum("bgrij,bjgd->bigrd", weights, v).reshape(B, n, -1), weights.reshape(B, n_heads, n, m)


@right(4, "find_the_bug")
def bug_mended_with_copies(q, k, v, n_heads, n_kv_heads):
    q = torch.stack(q.chunk(n_heads, -1), 1)
    k, v = (torch.stack(each.chunk(n_kv_heads, -1), 1) for each in (k, v))
    k, v = (each.repeat_interleave(n_heads // n_kv_heads, 1) for each in (k, v))
    weights = torch.softmax(q @ k.mT / math.sqrt(k.shape[-1]), dim=-1)
    return (weights @ v).transpose(1, 2).flatten(2), weights


@right(4, "find_the_bug")
def bug_mended_head_by_head(q, k, v, n_heads, n_kv_heads):
    d = q.shape[-1] // n_heads
    outputs, tables = [], []
    for head in range(n_heads):
        own, shared = head * d, head // (n_heads // n_kv_heads) * d
        scores = q[..., own : own + d] @ k[..., shared : shared + d].mT / d**0.5
        tables.append(scores.softmax(-1))
        outputs.append(tables[-1] @ v[..., shared : shared + d])
    return torch.cat(outputs, -1), torch.stack(tables, 1)


def bug_with_root(root):
    def broken_groups(q, k, v, n_heads, n_kv_heads):
        B, n, m = q.shape[0], q.shape[1], k.shape[1]
        divisor = root(q, k, n_heads, n_kv_heads)
        q = q.view(B, n, n_kv_heads, n_heads // n_kv_heads, -1)
        k, v = (each.view(B, m, n_kv_heads, -1) for each in (k, v))
        weights = torch.softmax(torch.einsum("bigrd,bjgd->bgrij", q, k) / divisor, dim=-1)
        return torch.einsum("bgrij,bjgd->bigrd", weights, v).flatten(2), weights.flatten(1, 2)

    return broken_groups


@wrong(4, "find_the_bug")
def bug_as_it_stands(q, k, v, n_heads, n_kv_heads):
    return bug_with_root(lambda q, k, h, h_kv: math.sqrt(k.shape[-1]))(q, k, v, n_heads, n_kv_heads)


@wrong(4, "find_the_bug")
def bug_with_groups_and_key_heads_exchanged(q, k, v, n_heads, n_kv_heads):
    B, n, m = q.shape[0], q.shape[1], k.shape[1]
    q = q.view(B, n, n_heads // n_kv_heads, n_kv_heads, -1)
    k, v = (each.view(B, m, n_kv_heads, -1) for each in (k, v))
    weights = torch.softmax(torch.einsum("birgd,bjgd->brgij", q, k) / math.sqrt(k.shape[-1]), dim=-1)
    return torch.einsum("brgij,bjgd->birgd", weights, v).flatten(2), weights.flatten(1, 2)


@wrong(4, "find_the_bug")
def bug_mended_by_one_who_scales_the_queries_in_place(q, k, v, n_heads, n_kv_heads):
    q /= math.sqrt(q.shape[-1] // n_heads)
    return bug_with_root(lambda *_: 1.0)(q, k, v, n_heads, n_kv_heads)
