"""Sentences that the real model has read, for the machines and pages that do not have it: `recorded()`.

    python -m course_utils.models.real_sentences --record

looks at each of `SENTENCES` with the real model and writes course_utils/data/models/real-sentences.json. Weights are
rounded to 1/255, a byte each; of every head only what a causal model computes is kept, its rows up to the diagonal.
"""

from __future__ import annotations

import base64
import datetime
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from course_utils import course
from course_utils.costs import records
from course_utils.models import real
from course_utils.models.pretrained import store

SENTENCES = (
    "The parcel that we sent arrived",
    "The keys that the teacher left on the table were",
    "The animal didn't cross the street because it was too tired",
    "The animal didn't cross the street because it was too wide",  # its control: one word changed, the last
    "The capital of France is Paris. The capital of Italy is",
    "The small red fox saw the small red",  # a phrase again, for induction
)
ASKED_OF = dict.fromkeys(SENTENCES[2:4], " it")  # the token whose looks are the question; of others it is the last
OWN = "SmolLM2-135M-Instruct"
FOLLOWING = 5  # tokens that may come next, stored for each token
LEVELS = 255
STORED = Path(__file__).parents[1] / "data" / "models"
NAME = "real-sentences.json"
COMMAND = "python -m course_utils.models.real_sentences --record"


@dataclass(frozen=True)
class Reading:
    """What a model makes of a text. tokens: T texts. source: who read it, and when it is recorded.

    levels: (layers, heads, T, T) uint8, the weights in steps of 1/255. following: for each token the likeliest next
    ones as (text, probability in thousandths).
    """

    text: str
    tokens: list[str]
    levels: np.ndarray
    following: list[list[tuple[str, int]]]
    source: str

    @property
    def asked(self) -> int:
        """The place of the token from which the sentence is shown first."""
        return self.tokens.index(ASKED_OF[self.text]) if self.text in ASKED_OF else len(self.tokens) - 1

    @property
    def triangles(self) -> bytes:
        """The rows of each head up to the diagonal, head after head, layer after layer."""
        return self.levels[:, :, *np.tril_indices(len(self.tokens))].tobytes()


def read(model: real.Real, text: str, name: str = "") -> Reading:
    """Return what a model makes of a text. name: what to call the model, in place of its own name.

    Raises ValueError for no token, or more than the model can take.
    """
    tokens, weights, logits = model.look(text)
    chances, places = logits.float().softmax(-1).topk(min(FOLLOWING, logits.shape[-1]))  # (T, FOLLOWING)
    following = [
        list(zip(model.tokenizer.texts(row), (round(1000 * chance) for chance in some), strict=True))
        for row, some in zip(places.tolist(), chances.tolist(), strict=True)
    ]
    levels = np.rint(weights.float().numpy() * LEVELS).astype(np.uint8)
    return Reading(text, tokens, levels, following, f"computed here by {name or model.name}")


def here() -> tuple[real.Real, str]:
    """The model on this machine, and what people call it: its file says something else. Raises as `real.load` does."""
    model = real.load()
    return model, OWN if store.chosen() is None else model.name


def from_triangles(triangles: bytes, layers: int, heads: int, T: int) -> np.ndarray:
    """Return the levels (layers, heads, T, T) of which these are the rows up to the diagonal."""
    levels = np.zeros((layers, heads, T, T), np.uint8)
    levels[:, :, *np.tril_indices(T)] = np.frombuffer(triangles, np.uint8).reshape(layers, heads, -1)
    return levels


@cache
def recorded() -> tuple[Reading, ...]:
    """Return what the real model made of `SENTENCES`."""
    stored = json.loads((STORED / NAME).read_text(encoding="utf-8"))
    header = stored["header"]
    source = f"recorded from {header['model']} on {header['date']}"
    return tuple(
        Reading(
            row["text"],
            row["tokens"],
            from_triangles(base64.b64decode(row["weights"]), header["layers"], header["heads"], len(row["tokens"])),
            [[(text, chance) for text, chance in some] for some in row["following"]],
            source,
        )
        for row in stored["sentences"]
    )


def write(readings: Sequence[Reading], name: str, folder: Path) -> Path:
    """Write what a model of this name made of texts; its path. A line holds the header, and a line each text."""
    layers, heads = readings[0].levels.shape[:2]
    header: dict[str, Any] = {
        "model": name,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "versions": {"course": course.version(), "numpy": version("numpy"), "torch": version("torch")},
        "command": COMMAND,
        "layers": layers,
        "heads": heads,
        "weights": "rounded to 1/255; base64 of a byte each: a head's rows up to the diagonal, then the next head's",
        "following": "the likeliest next tokens after each token, with their probabilities in thousandths",
    }
    rows = [
        {
            "text": each.text,
            "tokens": each.tokens,
            "following": each.following,
            "weights": base64.b64encode(each.triangles).decode(),
        }
        for each in readings
    ]
    lines = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in rows)
    text = f'{{\n "header": {json.dumps(header, ensure_ascii=False)},\n "sentences": [\n  {lines}\n ]\n}}\n'
    folder.mkdir(parents=True, exist_ok=True)
    (folder / NAME).write_text(text, encoding="utf-8")
    return folder / NAME


def main(quick: bool = False, folder: Path | str = STORED) -> None:
    """Let the real model read the sentences, and write what it made of them to the folder."""
    model, name = here()
    readings = [read(model, text) for text in SENTENCES[: 1 if quick else None]]
    path = write(readings, name, Path(folder))
    print(f"{len(readings)} sentences, {path.stat().st_size:,} bytes: {path}")


if __name__ == "__main__":
    records.command_line(main, __doc__, STORED)
