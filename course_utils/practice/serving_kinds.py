"""Practice problems on serving: three requests in two slots, the place of a token in blocks, one speculative draft."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from .count_kinds import Drawn, figures, list_figures
from .problem import Misstep, Step, Values


def batching(rng: random.Random) -> Drawn:
    """Draw a problem: the steps of three requests in two slots, static and continuous, and how full the slots are."""
    a, b, c = (rng.randint(2, 14) for _ in range(3))
    inputs = figures(a=a, b=b, c=c)
    steps = (
        Step("static", "steps of static batching", lambda v: max(v["a"], v["b"]) + v["c"], (
            Misstep("one by one", lambda v: v["a"] + v["b"] + v["c"],
                "A and B run side by side: the longer one counts."),
            Misstep("continuous", _count_refilled_steps,
                "This refills a slot at once. A static batch lets nobody in until both are done."),
        )),
        Step("continuous", "steps of continuous batching", _count_refilled_steps, (
            Misstep("after the longer", lambda v: max(v["a"], v["b"]) + v["c"],
                "C takes the slot of the one that is done first."),
            Misstep("C alone", lambda v: min(v["a"], v["b"]) + v["c"],
                "This is the step at which C ends. The longer of A and B may end later."),
            Misstep("full slots", lambda v: (v["a"] + v["b"] + v["c"]) / 2,
                "So few steps would need both slots to be full to the end."),
        )),
        Step("use", "the share of slots that had work, continuous", lambda v: _tokens(v) / (2 * v["continuous"]), (
            Misstep("one slot", lambda v: _tokens(v) / v["continuous"], "There are two slots in each step."),
            Misstep("static", lambda v: _tokens(v) / (2 * v["static"]), "These are the steps of the static batch."),
        )),
    )  # fmt: skip
    statement = {"tokens of A": str(a), "tokens of B": str(b), "tokens of C": str(c), "slots": "2"}
    return "Requests A, B and C, all there at the start, their prompts done.\n" + list_figures(statement), inputs, steps


def _count_refilled_steps(v: Values) -> float | np.ndarray:
    """Return the number of steps when C takes the slot of the shorter of A and B."""
    return max(v["a"], v["b"], min(v["a"], v["b"]) + v["c"])


def _tokens(v: Values) -> np.ndarray:
    return v["a"] + v["b"] + v["c"]


def paged_slot(rng: random.Random) -> Drawn:
    """Draw a problem: the blocks of a text, their empty places, and where one of its tokens is."""
    size = rng.choice((4, 8, 16))
    held = rng.randint(3, 5)
    tokens = (held - 1) * size + rng.randint(1, size - 1)
    table = rng.sample(range(1, 30), held)
    token = rng.randint(size, tokens - 1)
    inputs = figures(size=size, tokens=tokens, token=token) | {"table": np.asarray(table, dtype=float)}
    steps = (
        Step("blocks", "blocks that the text needs", lambda v: np.ceil(v["tokens"] / v["size"]), (
            Misstep("rounded down", lambda v: v["tokens"] // v["size"],
                "Tokens after the last full block need one too."),
        )),
        Step("empty", "places of its blocks that stay empty", lambda v: v["blocks"] * v["size"] - v["tokens"], (
            Misstep("filled", lambda v: v["tokens"] % v["size"], "These are the filled places of the last block."),
        )),
        Step("block", "the block of the token, from the table",
            lambda v: v["table"][int(v["token"] // v["size"])], (
            Misstep("its place in the table", lambda v: v["token"] // v["size"],
                "This is the place in the table: read which block is there."),
            Misstep("counted from 1", lambda v: v["table"][int(v["token"] // v["size"]) - 1],
                "The table is counted from 0, as tokens are."),
        )),
        Step("slot", "its row in the store: block · size + place",
            lambda v: v["block"] * v["size"] + v["token"] % v["size"], (
            Misstep("no table", lambda v: v["token"],
                "This is the place in the text. The store has it where the table says."),
            Misstep("whole token", lambda v: v["block"] * v["size"] + v["token"],
                "Within the block count from the block's first token."),
        )),
    )  # fmt: skip
    statement = {
        "block size": str(size), "tokens of the text": str(tokens), "block table": " ".join(map(str, table)),
        "the token, counted from 0": str(token),
    }  # fmt: skip
    return "A text in blocks. Tokens, blocks and places are counted from 0.\n" + list_figures(statement), inputs, steps


def speculation(rng: random.Random) -> Drawn:
    """Draw a problem: the chance that a draft is kept, what replaces a rejected one, and the tokens per round."""
    p, q = _law(rng), _law(rng)
    likely = [i for i in range(3) if q[i] > p[i]]
    drafted = rng.choice(likely) if likely else 0
    gamma = rng.choice((2, 3))
    inputs = figures(drafted=drafted, gamma=gamma) | {"p": p, "q": q}
    steps = (
        Step("kept", "the chance that this draft is kept", lambda v: min(1.0, _at(v, "p") / _at(v, "q")), (
            Misstep("q over p", lambda v: _at(v, "q") / _at(v, "p"), "The target's probability goes on top: p over q."),
            Misstep("p", lambda v: _at(v, "p"), "It was drafted with q already, so divide by it."),
        )),
        Step("remainder", "the distribution of what replaces a rejected draft", _remainder, (
            Misstep("not divided", lambda v: np.maximum(v["p"] - v["q"], 0), "Divide by the sum, so that it is 1."),
            Misstep("from p", lambda v: v["p"],
                "Kept drafts gave min(p, q) already. Only what is missing may be added."),
            Misstep("q minus p", lambda v: np.maximum(v["q"] - v["p"], 0) / np.maximum(v["q"] - v["p"], 0).sum(),
                "What the drafter likes too well is not missing: p minus q."),
        )),
        Step("alpha", "the chance that any draft is kept", lambda v: np.minimum(v["p"], v["q"]).sum(), (
            Misstep("total variation", lambda v: np.maximum(v["p"] - v["q"], 0).sum(),
                "This is the chance that a draft is rejected."),
            Misstep("the product", lambda v: (v["p"] * v["q"]).sum(),
                "This is the chance that two independent draws agree."),
        )),
        Step("tokens", "tokens of a round on average, all drafts with this chance",
            lambda v: sum(v["alpha"] ** i for i in range(int(v["gamma"]) + 1)), (
            Misstep("no last token", lambda v: sum(v["alpha"] ** i for i in range(1, int(v["gamma"]) + 1)),
                "After the drafts comes one more token in every round."),
            Misstep("each alone", lambda v: 1 + v["gamma"] * v["alpha"],
                "A draft counts only if all before it were kept."),
        )),
    )  # fmt: skip
    statement = {
        "p of tokens 0, 1, 2": "  ".join(f"{each:.1f}" for each in p),
        "q of them": "  ".join(f"{each:.1f}" for each in q),
        "drafted": str(drafted), "drafts a round": str(gamma),
    }  # fmt: skip
    return "A target with distribution p and a drafter with distribution q.\n" + list_figures(statement), inputs, steps


def _law(rng: random.Random) -> np.ndarray:
    cuts = sorted(rng.sample(range(1, 10), 2))
    return np.array([cuts[0], cuts[1] - cuts[0], 10 - cuts[1]]) / 10


def _at(v: Values, name: str) -> float:
    return float(v[name][int(v["drafted"])])


def _remainder(v: Values) -> np.ndarray:
    missing = np.maximum(v["p"] - v["q"], 0)
    return missing / missing.sum() if missing.any() else v["p"]


KINDS: dict[str, Callable[[random.Random], Drawn]] = {
    "batching": batching,
    "paged-slot": paged_slot,
    "speculation": speculation,
}
