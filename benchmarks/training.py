"""nanoGPT's small setting for a CPU against the capstone's model: bits per byte at equal tokens and at equal minutes.

nanoGPT's: 4 layers and 4 heads of width 128, 64 characters, 12 windows a step, 2,000 steps from 1e-3 to 1e-4, warm-up
100, β₂ 0.99, learned positions, LayerNorm, GELU, no dropout, no bias; here in the course's decoder. Rates are tuned
alike first, among five each, in 200 steps. Then all train in turns, a step each, so that a busy moment meets all:
nanoGPT's at its published rate and at its best one, ours with its vocabulary of characters for as many tokens, and ours
as it ships, for as many seconds as nanoGPT's at its best rate. Two threads, or as many as OMP_NUM_THREADS says.
Source: nanoGPT, README.md, "I only have a macbook", and model.py.
usage: python benchmarks/training.py [--quick] [--out DIR | --record]
"""

import math
from dataclasses import replace

import torch
from torch import nn

from course_utils.costs import records
from course_utils.costs.measure import environment
from course_utils.models import small_gpt
from course_utils.models.decoder import Decoder
from course_utils.models.position_experiment import PlacedEmbedding
from course_utils.models.training import Recipe, Run

THREADS = 2
NANO = Recipe(rate=1e-3, final=0.1, warm_up=100, batch=12, context=64)
OURS = Recipe()
STEPS = 2000
TUNING = 200
RATES = (1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2)  # tried for each: the best of neither is at an end
EARLIER = "nanoGPT's setting"


class Characters:
    """A tokenizer whose tokens are the different bytes of a text."""

    def __init__(self, text):
        self.letters = sorted(set(text))
        self.vocabulary = len(self.letters)

    def encode(self, text):
        numbers = {letter: number for number, letter in enumerate(self.letters)}
        return [numbers[letter] for letter in text]

    def bytes_of(self, token):
        return bytes([self.letters[token]])


def characters(text):
    cut = len(text) * 9 // 10
    tokenizer = Characters(text)
    train, held_out = (torch.tensor(tokenizer.encode(part)) for part in (text[:cut], text[cut:]))
    return small_gpt.Data(tokenizer, train, held_out)


def nano_gpt(vocabulary, seed=0):
    """nanoGPT's small model from the course's layers, with its initialisation."""
    torch.manual_seed(seed)
    model = Decoder(vocabulary, d_model=128, n_layers=4, n_heads=4, d_ff=512)
    model.embedding = PlacedEmbedding(vocabulary, 128, "learned")
    model.unembedding.weight = model.embedding.weight
    model.embedding.places = nn.Parameter(torch.empty(NANO.context, 128))
    for name, weights in model.named_parameters():
        if weights.ndim == 2:
            last = name.endswith(("out_proj.weight", "feed_forward.2.weight"))
            nn.init.normal_(weights, std=0.02 / math.sqrt(2 * len(model.blocks)) if last else 0.02)
    for block in model.blocks:
        block.attention.rope = None
        block.attention.own["grouped_attention"] = small_gpt.attend
        block.feed_forward[0].bias = block.feed_forward[2].bias = None
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.bias = None
    return model


class Alongside(Run):
    """A training that takes as many seconds as another one, which goes on in turns with it."""

    def __init__(self, model, recipe, other):
        super().__init__(model, recipe, None, None)
        self.other = other

    @property
    def share(self):
        if not self.done:
            return 0.0
        return self.history.seconds / self.other.history.seconds * min(1.0, self.other.share)


def take_turns(runs, texts):
    """A step each, of those that have done the least share of their training."""
    while unfinished := [name for name, run in runs.items() if run.share < 1]:
        name = min(unfinished, key=lambda name: runs[name].share)
        runs[name].step(small_gpt.batches, texts[name].train)


def tune(build, data, recipe, steps, windows):
    """The rates tried and the bits per byte of each: {rate: bits}."""
    runs = {rate: Run(build(), replace(recipe, rate=rate), steps, None) for rate in RATES}
    take_turns(runs, dict.fromkeys(runs, data))
    return {rate: measure(run, data, windows) for rate, run in runs.items()}


def measure(run, data, windows):
    return small_gpt.bits_per_byte(run.model.eval(), data, run.recipe.context, windows)


def settings_of(quick):
    """Texts by vocabulary, steps, steps of tuning, and windows to measure."""
    text = small_gpt.TEXT.read_bytes()
    if quick:
        return characters(text[:20_000]), small_gpt.data_of(text[:20_000], 300), 4, 2, 2
    return characters(text), small_gpt.data(), STEPS, TUNING, None


def main(quick, folder):
    torch.set_num_threads(min(THREADS, torch.get_num_threads()))
    where = environment()
    letters, pairs, steps, tuning, windows = settings_of(quick)
    builds = {
        "nanoGPT": (lambda: nano_gpt(letters.tokenizer.vocabulary), letters, NANO),
        "ours": (lambda: small_gpt.new_model(pairs.tokenizer.vocabulary), pairs, OURS),
    }
    tuned = {name: tune(build, data, recipe, tuning, windows) for name, (build, data, recipe) in builds.items()}
    best = {name: min(bits, key=bits.get) for name, bits in tuned.items()}
    print(f"rates and bits per byte after {tuning} steps: {tuned}", flush=True)
    ours = replace(OURS, rate=best["ours"])
    tokens = steps * NANO.batch * NANO.context
    at_best = Run(builds["nanoGPT"][0](), replace(NANO, rate=best["nanoGPT"]), steps, None)
    few = small_gpt.new_model(letters.tokenizer.vocabulary)
    runs = {
        EARLIER: Run(builds["nanoGPT"][0](), NANO, steps, None),
        f"{EARLIER}, best rate": at_best,
        "ours, of characters, equal tokens": Run(few, ours, tokens // (ours.batch * ours.context), None),
        "ours, equal minutes": Alongside(builds["ours"][0](), ours, at_best),
    }
    texts = {name: pairs if name == "ours, equal minutes" else letters for name in runs}
    take_turns(runs, texts)
    rows = [row_of(name, run, texts[name], windows) for name, run in runs.items()]
    print(records.table(rows))
    findings = compare(rows)
    print("\n".join(findings))
    settings = {"quick": quick, "command": "python benchmarks/training.py --record", "text": small_gpt.TEXT.name}
    settings |= {"threads": torch.get_num_threads(), "steps": steps, "tuning": tuning, "sizes": small_gpt.SIZES}
    settings |= {"tried": {name: {f"{rate:g}": bits for rate, bits in tried.items()} for name, tried in tuned.items()}}
    print(f"written: {records.write('training', where, settings, rows, findings, folder)}")


def row_of(name, run, data, windows):
    tokens = run.done * run.recipe.batch * run.recipe.context
    return {
        "model": name, "parameters": sum(weights.numel() for weights in run.model.parameters()),
        "rate": run.recipe.rate, "steps": run.done, "tokens": tokens, "seconds": run.history.seconds,
        "tokens_per_second": run.history.tokens_per_second, "bits_per_byte": measure(run, data, windows),
    }  # fmt: skip


def compare(rows):
    published, at_best, equal_tokens, equal_minutes = (row["bits_per_byte"] for row in rows)
    lower = min(published, at_best)
    return [
        f"nanoGPT's setting: {published:.3f} bits per byte at its published rate, {at_best:.3f} at its best of five.",
        f"Ours at equal tokens, of characters too: {equal_tokens:.3f}, {equal_tokens / lower:.3f} times as many bits.",
        f"Ours at equal minutes: {equal_minutes:.3f}, {equal_minutes / lower:.3f} times as many bits.",
    ]


if __name__ == "__main__":
    records.command_line(main, __doc__)
