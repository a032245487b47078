"""Learn to look things up, with the scores as they are, times 1/√d_k, or times 1/d_k: the same model three times.

    python -m course_utils.models.scale_experiment --record

trains all of it again, with five seeds and four learning rates, on two cores in less than two minutes, and writes what
`recorded` reads.
"""

import math
import multiprocessing
import statistics
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.attention.scaling import entropy
from course_utils.attention.shapes import whole
from course_utils.attention.tensors import attention
from course_utils.costs import records
from course_utils.costs.measure import environment

D_K = 256
D_MODEL = 64
SCALES = {"1": 1.0, "1/√d_k": 1 / math.sqrt(D_K), "1/d_k": 1 / D_K}
PAIRS = 16  # in a dictionary
KEYS = 32  # to draw them from
VALUES = 16
BATCH = 64
STEPS = 500
RATE = 1e-3
RATES = (3e-4, 1e-3, 3e-3, 1e-2)
SEEDS = (0, 1, 2, 3, 4)
AS_NN_LINEAR = 1 / math.sqrt(3)  # what entries of q and k start with where nn.Linear chooses the weights
SETTINGS = (*((rate, 1.0) for rate in RATES), (RATE, AS_NN_LINEAR))
LEARNT = 0.1  # nats: a loss below this counts as learnt
BENCHMARK = "scale-experiment"
STORED = Path(__file__).parents[1] / "data" / "models"


class Run(NamedTuple):
    """One training run: the loss of each step, and what attention did on 512 unseen dictionaries before and after.

    losses are in nats. entropy_before and entropy_after are the mean entropy of the 16 weights, nats (log 16 = 2.77
    when all are equal); found_before and found_after are the mean weight on the key that was asked for.
    """

    losses: list
    entropy_before: float
    entropy_after: float
    found_before: float
    found_after: float


def train(scale: float, seed: int = 0, rate: float = RATE, steps: int = STEPS, start: float = 1.0) -> Run:
    """Train a `LookUp` whose scores are multiplied by `scale` and return the Run.

    Each step draws 64 new dictionaries, for Adam at this learning rate. The seed settles initial weights and data, so
    that runs of one seed differ by the scale only: on one thread the same seed gives the same numbers. start is the
    standard deviation that entries of q and k begin with: 1 as in the proof, 1/√3 with the weights that nn.Linear
    itself would choose. About 3 ms a step. Raises ValueError for a scale, rate or start that is not positive and
    finite, steps below 1 or a negative seed, TypeError for steps or a seed that are no whole numbers.
    """
    steps = whole("steps", steps)
    seed = whole("seed", seed, least=0)
    for name, number in (("scale", scale), ("rate", rate), ("start", start)):
        if not 0 < number < math.inf:
            raise ValueError(f"{name} is {number}: give a positive, finite number")
    model = _new_model(scale, seed, start)
    unseen = _unseen(seed)
    before = _look_inside(model, unseen)
    losses = _fit(model, seed, rate, steps)
    after = _look_inside(model, unseen)
    return Run(losses, before[0], after[0], before[1], after[1])


@torch.no_grad()
def scores_after(steps: int, seed: int = 0, rate: float = RATE) -> tuple[Tensor, Tensor, Tensor]:
    """What the model with the scale 1/√d_k computes after so many steps, 0 for the untrained one: (q, wanted, others).

    On 512 unseen dictionaries: the queries q (512, d_k), their scaled scores with the key asked for, wanted (512,), and
    with the 15 other keys, others (512, 15). Raises ValueError or TypeError for steps or a seed below 0 or not whole.
    """
    steps = whole("steps", steps, least=0)
    seed = whole("seed", seed, least=0)
    model = _new_model(SCALES["1/√d_k"], seed)
    (keys, values, query_keys, place) = _unseen(seed)
    with torch.enable_grad():
        _fit(model, seed, rate, steps)
    q = model.q_proj(model.keys(query_keys))  # (B, d_k)
    scores = model.scale * (model.k_proj(model.pairs(keys, values)) @ q[:, :, None])[..., 0]  # (B, m)
    is_target = torch.arange(PAIRS) == place[:, None]
    return q, scores[is_target], scores[~is_target].view(len(q), PAIRS - 1)


class LookUp(nn.Module):
    """One head of attention, d_k = 256, that reads a dictionary: the key asked for is the query, the answer its value.

    Each pair is one token, embedded as (key + value)/√2. W_Q and W_K start as normal numbers of standard
    deviation start/√d_model, so that the entries of queries and keys start with mean 0 and standard deviation `start`.
    """

    def __init__(self, scale: float, start: float = 1.0) -> None:
        super().__init__()
        self.scale = scale
        self.keys, self.values = nn.Embedding(KEYS, D_MODEL), nn.Embedding(VALUES, D_MODEL)
        self.q_proj = nn.Linear(D_MODEL, D_K, bias=False)
        self.k_proj = nn.Linear(D_MODEL, D_K, bias=False)
        self.v_proj = nn.Linear(D_MODEL, D_MODEL, bias=False)
        self.read = nn.Linear(D_MODEL, VALUES, bias=False)
        for layer in (self.q_proj, self.k_proj):
            nn.init.normal_(layer.weight, std=start / math.sqrt(D_MODEL))

    def forward(self, keys: Tensor, values: Tensor, query_keys: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (B, 16) over the values and weights (B, 16) over the pairs, for `dictionaries` (B, 16)."""
        pairs = self.pairs(keys, values)
        q = self.q_proj(self.keys(query_keys))[:, None]  # (B, 1, d_k)
        blended, weights = attention(q, self.k_proj(pairs), self.v_proj(pairs), scale=self.scale)
        return self.read(blended[:, 0]), weights[:, 0]  # (B, 16), (B, m)

    def pairs(self, keys: Tensor, values: Tensor) -> Tensor:
        """Each pair as one token: (B, m) and (B, m) -> (B, m, d_model)."""
        return (self.keys(keys) + self.values(values)) / math.sqrt(2)


def dictionaries(batch: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Random dictionaries: keys and values (batch, 16), the key asked for (batch,) and its place (batch,); int64.

    The keys of one dictionary differ; values may repeat. Who ignores the question pays at least 2.22 nats: the mean
    entropy of the values in a dictionary.
    """
    keys = torch.rand(batch, KEYS, generator=generator).argsort(dim=1)[:, :PAIRS]  # (B, m)
    values = torch.randint(VALUES, (batch, PAIRS), generator=generator)  # (B, m)
    place = torch.randint(PAIRS, (batch,), generator=generator)
    return keys, values, keys.gather(1, place[:, None])[:, 0], place


def _new_model(scale: float, seed: int, start: float = 1.0) -> LookUp:
    with torch.random.fork_rng(devices=[]):  # leaves the caller's own generator where it was
        torch.manual_seed(seed)
        return LookUp(scale, start)


def _unseen(seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return dictionaries(512, torch.Generator().manual_seed(2000 + seed))


def _fit(model: LookUp, seed: int, rate: float, steps: int) -> list[float]:
    """Train the model in place; the loss of each step."""
    generator = torch.Generator().manual_seed(1000 + seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    losses = []
    for _ in range(steps):
        keys, values, query_keys, place = dictionaries(BATCH, generator)
        logits, _ = model(keys, values, query_keys)
        loss = F.cross_entropy(logits, values.gather(1, place[:, None])[:, 0])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


# --- the stored run -------------------------------------------------------------------------------------------------


@cache
def recorded() -> dict[str, Any]:
    """Return the run that ships with the course, as `records.read` gives it: environment, settings, rows, findings.

    A row is one training run: scale (its name), rate, start, seed, losses (each the mean of settings["averaged"] steps,
    nats), entropy_before, entropy_after, found_before, found_after as in `Run`.
    """
    return records.recorded(BENCHMARK, STORED)[0]


def curves(
    rate: float = RATE, start: float = 1.0, result: Mapping[str, Any] | None = None
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the loss curves of one learning rate and one start, for a plot: (steps, {name of scale: losses}).

    steps (points,) are the middles of the averaged steps, losses (seeds, points) nats, both float64 arrays. result is
    `recorded()` when left out. Raises ValueError for what was not run.
    """
    result = recorded() if result is None else result
    settings = result["settings"]
    rows = _runs(result, rate, start)
    if not rows:
        stored = ", ".join(f"({rate}, {start:.3g})" for rate, start in settings["rates_and_starts"])
        raise ValueError(f"rate {rate}, start {start:.3g} was not run: stored are {stored}")
    losses = {name: np.array([row["losses"] for row in rows if row["scale"] == name]) for name in settings["scales"]}
    points = next(iter(losses.values())).shape[1]
    return (np.arange(points) + 0.5) * settings["averaged"], losses


def summary(result: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Return a row for each rate, start and scale, as dicts: rate, start, scale, and medians over the seeds.

    loss: of the last averaged steps, nats, with loss_low and loss_high the least and largest; entropy_before,
    entropy_after, found_after; steps_to_learn: until the loss was below 0.1 nats, None if fewer than half got there;
    learnt: how many seeds did. result is `recorded()` when left out.
    """
    result = recorded() if result is None else result
    rows = []
    for rate, start in result["settings"]["rates_and_starts"]:
        for name in result["settings"]["scales"]:
            runs = [row for row in _runs(result, rate, start) if row["scale"] == name]
            summed = _summary_of(runs, result["settings"]["averaged"])
            rows.append({"rate": rate, "start": start, "scale": name} | summed)
    return rows


def _runs(result: Mapping[str, Any], rate: float, start: float) -> list[dict[str, Any]]:
    """The rows of that rate and start; the file keeps six digits."""
    return [row for row in result["rows"] if row["rate"] == rate and math.isclose(row["start"], start, rel_tol=1e-5)]


def _summary_of(runs: Sequence[Mapping[str, Any]], averaged: int) -> dict[str, Any]:
    last = [run["losses"][-1] for run in runs]
    needed = [_steps_to_learn(run["losses"], averaged) for run in runs]
    typical = statistics.median_low(needed)
    medians = {
        key: statistics.median(run[key] for run in runs) for key in ("entropy_before", "entropy_after", "found_after")
    }
    return {
        "loss": statistics.median(last), "loss_low": min(last), "loss_high": max(last), **medians,
        "steps_to_learn": typical if typical < math.inf else None, "learnt": sum(n < math.inf for n in needed),
    }  # fmt: skip


def _steps_to_learn(losses: Sequence[float], averaged: int) -> float:
    """The step after which the averaged loss was first below LEARNT, infinity if never."""
    return next(((i + 1) * averaged for i, loss in enumerate(losses) if loss < LEARNT), math.inf)


@torch.no_grad()
def _look_inside(model: LookUp, unseen: tuple[Tensor, ...]) -> tuple[float, float]:
    """Mean entropy of the weights, nats, and mean weight on the key asked for."""
    keys, values, query_keys, place = unseen
    _, weights = model(keys, values, query_keys)
    return entropy(weights).mean().item(), weights.gather(1, place[:, None]).mean().item()


def main(quick: bool = False, folder: Path | str = STORED) -> None:
    """Train every scale, rate and seed, print the summary, and write the result to the folder."""
    torch.set_num_threads(1)
    chosen, seeds, steps, averaged = (SETTINGS[1:2], SEEDS[:2], 10, 5) if quick else (SETTINGS, SEEDS, STEPS, 10)
    where = environment()
    runs = [
        {"scale": name, "rate": rate, "start": start, "seed": seed}
        for rate, start in chosen
        for name in SCALES
        for seed in seeds
    ]
    with _processes(1 if quick else 2) as pool:
        trained = pool.map(train, *zip(*(_arguments(run, steps) for run in runs), strict=True))
        rows = [run | _as_record(result, averaged) for run, result in zip(runs, trained, strict=True)]
    settings = {
        "quick": quick, "command": "python -m course_utils.models.scale_experiment --record", "d_k": D_K,
        "d_model": D_MODEL, "scales": SCALES, "pairs": PAIRS, "keys": KEYS, "values": VALUES, "batch": BATCH,
        "optimiser": "Adam", "rates_and_starts": chosen, "seeds": seeds, "steps": steps, "averaged": averaged,
    }  # fmt: skip
    result = {"settings": settings, "rows": rows}
    findings = [_finding(row, len(seeds)) for row in summary(result)]
    print("\n".join(findings))
    print(f"\nwritten: {records.write(BENCHMARK, where, settings, rows, findings, folder)}")


def _processes(count: int) -> ProcessPoolExecutor:
    """Processes of one thread each, for numbers that do not depend on how many there are."""
    fresh = multiprocessing.get_context("spawn")  # a forked process would share torch's state
    return ProcessPoolExecutor(count, fresh, initializer=torch.set_num_threads, initargs=(1,))


def _arguments(run: Mapping[str, Any], steps: int) -> tuple[float, int, float, int, float]:
    return SCALES[run["scale"]], run["seed"], run["rate"], steps, run["start"]


def _as_record(run: Run, averaged: int) -> dict[str, Any]:
    means = [statistics.fmean(run.losses[i : i + averaged]) for i in range(0, len(run.losses), averaged)]
    return {"losses": [round(mean, 4) for mean in means]} | {
        key: round(value, 4) for key, value in run._asdict().items() if key != "losses"
    }


def _finding(row: Mapping[str, Any], seeds: int) -> str:
    learnt = f"{row['learnt']} of {seeds} seeds learnt it"
    when = f" (median: {row['steps_to_learn']} steps)" if row["steps_to_learn"] else ""
    spread = f"last loss {row['loss']:.3f} ({row['loss_low']:.3f} to {row['loss_high']:.3f})"
    return f"rate {row['rate']}, start {row['start']:.3g}, scale {row['scale']}: {learnt}{when}; {spread}"


if __name__ == "__main__":
    records.command_line(main, __doc__, STORED)
