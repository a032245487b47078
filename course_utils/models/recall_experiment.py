"""Six ways to mix tokens, trained side by side to copy and to recall: equal parameters, equal tokens, three seeds."""

import math
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

VOCABULARY = 64
D_MODEL = 64
HEADS = 2
D_HEAD = 8
BATCH = 32
LENGTH = 64


class Mixer(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.q = nn.Linear(D_MODEL, HEADS * D_HEAD, bias=False)
        self.k = nn.Linear(D_MODEL, HEADS * D_HEAD, bias=False)
        self.v = nn.Linear(D_MODEL, HEADS * D_HEAD, bias=False)
        self.out = nn.Linear(HEADS * D_HEAD, D_MODEL, bias=False)
        self.gate = nn.Linear(D_MODEL, HEADS)  # beta or decay
        self.shift = nn.Parameter(torch.full((3, D_MODEL), 0.5))

    def forward(self, x):
        B, T, _ = x.shape
        before = F.pad(x, (0, 0, 1, 0))[:, :-1]
        q, k, v = (layer(x + s * (before - x)).view(B, T, HEADS, D_HEAD).transpose(1, 2) for layer, s in zip((self.q, self.k, self.v), self.shift))
        gate = torch.sigmoid(self.gate(x)).transpose(1, 2)  # (B, h, T)
        y = MIX[self.kind](q, k, v, gate)
        return self.out(y.transpose(1, 2).reshape(B, T, HEADS * D_HEAD))


def _rotate(x):
    T, d = x.shape[-2:]
    f = 1e4 ** (-torch.arange(0, d, 2) / d)
    a = torch.arange(T)[:, None] * f
    c, s = a.cos(), a.sin()
    x1, x2 = x[..., : d // 2], x[..., d // 2 :]
    return torch.cat([x1 * c - x2 * s, x1 * s + x2 * c], -1)


def _mask(T, window=None):
    m = torch.ones(T, T, dtype=torch.bool).tril()
    return m if window is None else m & ~torch.ones(T, T, dtype=torch.bool).tril(-window)


def full(q, k, v, gate, window=None):
    q, k = _rotate(q), _rotate(k)
    s = (q @ k.transpose(-1, -2)) / math.sqrt(D_HEAD)
    return s.masked_fill(~_mask(q.shape[-2], window), -torch.inf).softmax(-1) @ v


def no_positions(q, k, v, gate):
    s = (q @ k.transpose(-1, -2)) / math.sqrt(D_HEAD)
    return s.masked_fill(~_mask(q.shape[-2]), -torch.inf).softmax(-1) @ v


def linear(q, k, v, gate):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    s = (q @ k.transpose(-1, -2)) * _mask(q.shape[-2])
    return s @ v / s.sum(-1, keepdim=True)


def decayed(q, k, v, gate):
    q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
    g = F.logsigmoid(4 + torch.logit(gate.clamp(1e-4, 1 - 1e-4))).cumsum(-1)  # (B,h,T)
    d = (g[..., :, None] - g[..., None, :]).masked_fill(~_mask(q.shape[-2]), -torch.inf).exp()
    return ((q @ k.transpose(-1, -2)) * d) @ v


def delta(q, k, v, gate):
    q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
    T = q.shape[-2]
    system = torch.eye(T) + (gate[..., None] * (k @ k.transpose(-1, -2))).tril(-1)
    u = torch.linalg.solve_triangular(system, gate[..., None] * v, upper=False, unitriangular=True)
    return ((q @ k.transpose(-1, -2)) * _mask(T)) @ u


MIX = {"full": full, "nope": no_positions, "window": lambda *a: full(*a, window=16), "linear": linear, "decay": decayed, "delta": delta}


class Model(nn.Module):
    def __init__(self, kinds):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, D_MODEL)
        self.norms = nn.ModuleList(nn.LayerNorm(D_MODEL) for _ in kinds)
        self.mixers = nn.ModuleList(Mixer(k) for k in kinds)
        self.norm = nn.LayerNorm(D_MODEL)
        self.read = nn.Linear(D_MODEL, VOCABULARY, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for norm, mixer in zip(self.norms, self.mixers):
            x = x + mixer(norm(x))
        return self.read(self.norm(x))


def recall(rng, pairs, batch=BATCH):
    """keys 0..31, values 32..63: (batch, 64) tokens and a mask of the tokens to be told"""
    n = LENGTH // 2
    pairs = np.broadcast_to(np.asarray(pairs), (batch,))
    keys = rng.permuted(np.tile(np.arange(32), (batch, 1)), axis=1)
    values = rng.integers(32, 64, size=(batch, 32))
    first = np.arange(n)[None] % pairs[:, None]  # the first round shows every pair
    later = (rng.random((batch, n)) * pairs[:, None]).astype(int)
    which = np.where(np.arange(n) < pairs[:, None], first, later)
    tokens = np.empty((batch, LENGTH), int)
    tokens[:, ::2] = np.take_along_axis(keys, which, 1)
    tokens[:, 1::2] = np.take_along_axis(values, which, 1)
    told = np.zeros((batch, LENGTH), bool)
    told[:, 1::2] = np.arange(n) >= pairs[:, None]
    return torch.from_numpy(tokens), torch.from_numpy(told)


def copy(rng, length, batch=BATCH):
    """a piece over 16 letters, again and again"""
    length = np.broadcast_to(np.asarray(length), (batch,))
    pieces = rng.integers(16, size=(batch, 32))
    tokens = np.take_along_axis(pieces, np.arange(LENGTH) % length[:, None], axis=1)
    told = np.arange(LENGTH) > length[:, None]
    return torch.from_numpy(tokens), torch.from_numpy(told)


TASKS = {"recall": (recall, 2, 24, (4, 8, 16, 24)), "copy": (copy, 2, 32, (4, 8, 16, 31))}


def loss_of(model, tokens, told):
    logits = model(tokens)[:, :-1]
    t = told[:, 1:]
    return F.cross_entropy(logits[t], tokens[:, 1:][t]), (logits.argmax(-1)[t] == tokens[:, 1:][t]).float().mean().item()


def train(task, kinds, seed=0, steps=600, rate=3e-3, say=False):
    make, low, high, sizes = TASKS[task]
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    model = Model(kinds)
    opt = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0.0)
    for step in range(steps):
        batch = make(rng, rng.integers(low, high + 1, size=BATCH))
        loss, acc = loss_of(model, *batch)
        for g in opt.param_groups:
            g["lr"] = rate * min(1, (step + 1) / 50, (steps - step) / (0.3 * steps))
        opt.zero_grad(); loss.backward(); opt.step()
        if say and step % 100 == 0: print(step, round(loss.item(), 3), round(acc, 3), flush=True)
    rng = np.random.default_rng(999)
    with torch.no_grad():
        return {n: round(loss_of(model, *make(rng, n, 256))[1], 3) for n in sizes}


if __name__ == "__main__":
    import sys
    torch.set_num_threads(1)
    steps = int(sys.argv[2])
    for kind in sys.argv[3:]:
        t = time.time()
        kinds = kind.split("+") if "+" in kind else [kind, kind]
        print(sys.argv[1], kind, train(sys.argv[1], kinds, steps=steps), round(time.time() - t, 1), flush=True)
