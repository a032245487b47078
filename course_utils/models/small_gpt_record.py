"""The capstone's model trained in minutes, what each of its parts is worth, and how text looks at four losses.

    python -m course_utils.models.small_gpt_record --record

trains all of it again on one thread: the model that ships, one of single bytes for the ladder of texts, and small ones
with one thing taken away, five seeds each at equal tokens. It writes the weights and what `recorded` reads.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from course_utils.attention.multihead import MultiHeadAttention
from course_utils.costs import records
from course_utils.costs.measure import environment
from course_utils.models import small_gpt, training
from course_utils.models.decoder import Block, Decoder, load_weights, save_weights
from course_utils.models.position_experiment import PlacedEmbedding

STEPS = 1600  # seven minutes on one thread of the machine that recorded them
LADDER_STEPS = 1900
RUNGS = (3.3, 2.5, 2.0, 1.7)  # nats a character
WRITTEN = 200  # bytes of each text of the ladder
PROMPT = "\n"
SMALL: dict[str, Any] = {"d_model": 64, "n_layers": 4, "n_heads": 4, "d_ff": 168}
SMALL_VOCABULARY = 512
SMALL_STEPS = 200
SEEDS = (0, 1, 2, 3, 4)
AVERAGED = 20  # steps whose losses are averaged in the record
BENCHMARK = "small-gpt"
STORED = Path(__file__).parents[1] / "data" / "models"


# --- what is taken away ---------------------------------------------------------------------------------------------


class WithoutResidual(nn.Module):
    """A block whose attention and feed-forward network replace what they read, and add nothing to it."""

    def __init__(self, block: Block) -> None:
        super().__init__()
        self.attention, self.feed_forward = block.attention, block.feed_forward
        self.attention_norm, self.feed_forward_norm = block.attention_norm, block.feed_forward_norm

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        cache: Any = None,
        lengths: Any = None,
        head_mask: Tensor | None = None,
        return_weights: bool = False,
    ) -> tuple[Tensor, Tensor]:
        options = {"mask": mask, "cache": cache, "lengths": lengths, "head_mask": head_mask}
        x, weights = self.attention(self.attention_norm(x), return_weights=True, **options)
        return cast(nn.Module, self.feed_forward)(self.feed_forward_norm(x)), weights


def _without_residual(model: Decoder) -> None:
    """What writes 0 at first would pass nothing on, so these matrices are drawn as the others are."""
    for number, block in enumerate(model.blocks):
        for name, layer in block.named_modules():
            if name.endswith(("out_proj", "down")):
                layer = cast(nn.Linear, layer)
                nn.init.normal_(layer.weight, std=layer.in_features**-0.5)
        model.blocks[number] = WithoutResidual(cast(Block, block))


def _without_norm(model: Decoder) -> None:
    for module in (model, *model.blocks):
        for name in ("norm", "attention_norm", "feed_forward_norm"):
            if hasattr(module, name):
                setattr(module, name, nn.Identity())


def _without_gate(model: Decoder) -> None:
    """A plain network of as many weights: two matrices, wider by half, with GELU between."""
    for block in model.blocks:
        d_model, d_ff = SMALL["d_model"], SMALL["d_ff"] * 3 // 2
        up, down = nn.Linear(d_model, d_ff, bias=False), nn.Linear(d_ff, d_model, bias=False)
        nn.init.normal_(up.weight, std=d_model**-0.5)
        nn.init.zeros_(down.weight)
        block.feed_forward = nn.Sequential(up, nn.GELU(), down)


def _with_learned_positions(model: Decoder) -> None:
    embedding = PlacedEmbedding(model.embedding.num_embeddings, SMALL["d_model"], "learned")
    embedding.places = nn.Parameter(torch.randn(small_gpt.CONTEXT, SMALL["d_model"]) * small_gpt.EMBEDDING_STD)
    embedding.weight = model.unembedding.weight
    model.embedding = embedding
    for block in model.blocks:
        cast(MultiHeadAttention, block.attention).rope = None


def _with_pytorchs_initialisation(model: Decoder) -> None:
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            module.reset_parameters()
    nn.init.normal_(model.embedding.weight)  # the weights that two modules share are an embedding's


@dataclass(frozen=True)
class Ablation:
    """What differs from the small model with everything: a change to it, its sizes, its recipe, its vocabulary."""

    change: Callable[[Decoder], None] = lambda model: None
    sizes: Mapping[str, Any] = field(default_factory=dict)
    recipe: Mapping[str, Any] = field(default_factory=dict)
    vocabulary: int = SMALL_VOCABULARY


WHOLE = "with everything"
ABLATIONS = {
    WHOLE: Ablation(),
    "without residual": Ablation(_without_residual),
    "without norm": Ablation(_without_norm),
    "without gate": Ablation(_without_gate),
    "without tying": Ablation(sizes={"tied": False}),
    "with PyTorch's initialisation": Ablation(_with_pytorchs_initialisation),
    "with learned positions": Ablation(_with_learned_positions),
    "without warm-up": Ablation(recipe={"warm_up": 0}),
    "without cosine": Ablation(recipe={"final": 1.0}),
    "without clipping": Ablation(recipe={"clip": math.inf}),
    "without weight decay": Ablation(recipe={"weight_decay": 0.0}),
    "at a third of the rate": Ablation(recipe={"rate": training.Recipe.rate / 3}),
    "of single bytes": Ablation(vocabulary=256),
}


def ablated(way: str, seed: int = 0) -> Decoder:
    """Return the small untrained model of one of ABLATIONS. Raises KeyError for another name."""
    ablation = ABLATIONS[way]
    model = small_gpt.new_model(ablation.vocabulary, seed=seed, **(SMALL | dict(ablation.sizes)))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        ablation.change(model)
    return model


# --- training -------------------------------------------------------------------------------------------------------


def train_ablated(way: str, seed: int, steps: int = SMALL_STEPS, windows: int | None = None) -> training.History:
    """Train the small model of one of ABLATIONS, with the windows that all of one seed and vocabulary read."""
    ablation = ABLATIONS[way]
    recipe = {"warm_up": 30, "seed": seed} | dict(ablation.recipe)
    data = small_gpt.data(ablation.vocabulary)
    return training.train(ablated(way, seed), data, steps=steps, progress=None, windows=windows, **recipe)


def climb(steps: int = LADDER_STEPS, rungs: Sequence[float] = RUNGS) -> Iterator[dict[str, Any]]:
    """Train a model of single bytes, and let it write when its loss has come down to each rung.

    The loss is the mean of the last 20 steps. Gives a row for each rung that it reaches: loss, step, text.
    """
    data = small_gpt.data(256)
    model = small_gpt.new_model(256)
    run = training.Run(model, training.Recipe(), steps, None)
    waiting = list(rungs)
    while run.share < 1 and waiting:
        run.step(small_gpt.batches, data.train)
        loss = statistics.fmean(run.history.losses[-20:])
        if loss <= waiting[0]:
            waiting.pop(0)
            text = small_gpt.write(model.eval(), data.tokenizer, PROMPT, WRITTEN, temperature=1.0)
            model.train()
            yield {"kind": "rung", "loss": round(loss, 3), "step": run.done, "text": text}


def _ship(steps: int, folder: Path | str, windows: int | None) -> dict[str, Any]:
    """Train the model that ships, store its weights, and return its row of the record."""
    model, data = small_gpt.new_model(), small_gpt.data()
    history = training.train(model, data, steps=steps, windows=windows)
    stored = load(save(model, folder).parent)
    return {
        "kind": "shipped", "losses": _means(history.losses), "norms": _means(history.norms),
        "rates": _means(history.rates), "seconds": history.seconds, "tokens_per_second": history.tokens_per_second,
        "bits_per_byte": small_gpt.bits_per_byte(stored, data, windows=windows),
        "bits_per_byte_of_training_text": small_gpt.bits_per_byte(stored, data, windows=windows or 600, split="train"),
        "text": small_gpt.write(stored, data.tokenizer, PROMPT, WRITTEN // 2),
    }  # fmt: skip


def _means(numbers: Sequence[float]) -> list[float]:
    return [
        float(f"{statistics.fmean(numbers[i : i + AVERAGED]):.4g}") for i in range(0, len(numbers), AVERAGED)
    ]  # fmt: skip


# --- the stored run -------------------------------------------------------------------------------------------------


def save(model: Decoder, folder: Path | str = STORED) -> Path:
    """Write the weights in half precision to small-gpt.npz in the folder, for `load`. Returns the path."""
    state = model.state_dict()
    del state["unembedding.weight"]  # the embedding's
    return save_weights(state, Path(folder) / "small-gpt.npz")


def load(folder: Path | str = STORED) -> Decoder:
    """Return the trained model that ships with the course, in float32, ready to evaluate and to write.

    Its tokenizer is that of `small_gpt.data()`. Raises FileNotFoundError where the folder has no such file.
    """
    model = small_gpt.new_model()
    state = load_weights(Path(folder) / "small-gpt.npz")
    model.load_state_dict(state | {"unembedding.weight": state["embedding.weight"]})
    return model.eval().requires_grad_(False)


@cache
def recorded() -> dict[str, Any]:
    """Return the runs that ship with the course, as `records.read` gives it.

    A row has a kind. "shipped": losses, norms and rates, each the mean of settings["averaged"] steps, seconds,
    tokens_per_second, bits_per_byte on held-out text and on that of the training, and a text that it wrote. "rung":
    loss (nats a character), step and text. "ablation": way, seed, losses and bits_per_byte.
    """
    return records.recorded(BENCHMARK, STORED)[0]


def shipped() -> dict[str, Any]:
    """Return the row of the model that ships."""
    return next(row for row in recorded()["rows"] if row["kind"] == "shipped")


def ladder() -> list[dict[str, Any]]:
    """Return the texts at falling losses: rows with loss, step and text."""
    return [row for row in recorded()["rows"] if row["kind"] == "rung"]


def ablations(result: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Return a row for each of ABLATIONS: way, and mean, the bits per byte on held-out text over the seeds.

    `worse` has a number for each seed: by how much it is worse than the model with everything of the same seed;
    `recipe` says whether the model is trained in another way and is the same at first, and `start` is the mean loss of
    its first steps, as many as are averaged, in nats a token.
    """
    rows = (recorded() if result is None else result)["rows"]
    runs = {way: [row for row in rows if row["kind"] == "ablation" and row["way"] == way] for way in ABLATIONS}
    whole = {run["seed"]: run["bits_per_byte"] for run in runs[WHOLE]}
    found = []
    for way, of_way in runs.items():
        start = statistics.fmean(run["losses"][0] for run in of_way)
        mean = statistics.fmean(run["bits_per_byte"] for run in of_way)
        worse = [run["bits_per_byte"] - whole[run["seed"]] for run in of_way]
        recipe = bool(ABLATIONS[way].recipe)
        found.append({"way": way, "recipe": recipe, "start": start, "mean": mean, "worse": worse})
    return found


def worse_by_seed(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return as text by how much the models of these rows of `ablations` are worse than the one with everything."""
    return "\n".join(
        f"{row['way']:30} {statistics.fmean(row['worse']):+.3f} ({min(row['worse']):+.3f} to {max(row['worse']):+.3f})"
        for row in rows
        if row["way"] != WHOLE
    )


def main(quick: bool = False, folder: Path | str = STORED) -> None:
    """Train everything, print what was found, and write the weights and the result to the folder."""
    torch.set_num_threads(1)
    where = environment()
    steps, ladder_steps, small_steps = (3, 3, 3) if quick else (STEPS, LADDER_STEPS, SMALL_STEPS)
    windows = 8 if quick else None
    rows = [_ship(steps, folder, windows), *climb(ladder_steps, (9.0,) if quick else RUNGS)]
    for seed in SEEDS[: 1 if quick else None]:
        for way in ABLATIONS:
            history = train_ablated(way, seed, small_steps, windows)
            row = {"kind": "ablation", "way": way, "seed": seed, "bits_per_byte": history.bits_per_byte}
            rows.append(row | {"losses": _means(history.losses)})
            print(f"{way}, seed {seed}: {history.bits_per_byte:.3f} bits per byte", flush=True)
    settings = {
        "quick": quick, "command": "python -m course_utils.models.small_gpt_record --record", "threads": 1,
        "text": small_gpt.TEXT.name, "sizes": small_gpt.SIZES, "vocabulary": small_gpt.VOCABULARY, "steps": steps,
        "context": small_gpt.CONTEXT, "batch": small_gpt.BATCH, "rate": training.Recipe.rate, "averaged": AVERAGED,
        "small": SMALL, "small_vocabulary": SMALL_VOCABULARY, "small_steps": small_steps, "seeds": list(SEEDS),
    }  # fmt: skip
    findings = _findings(rows)
    print("\n".join(findings))
    print(f"\nwritten: {records.write(BENCHMARK, where, settings, rows, findings, folder)}")


def _findings(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    first = rows[0]
    found = [f"shipped: {first['bits_per_byte']:.3f} bits per byte after {first['seconds']:.0f} s of steps"]
    return found + [
        f"{row['way']}: {row['mean']:.3f} bits per byte ({row['low']:.3f} to {row['high']:.3f})"
        for row in ablations({"rows": rows})
    ]


if __name__ == "__main__":
    records.command_line(main, __doc__, STORED)
