"""What a step of the course's decoder costs over batch and context, and what a drafter of bigrams saves it.

One thread, float32. Steps: six layers, d_model 384, six heads, random weights, decode steps and prompts in turns; then
the fit t = a + b · tokens + c · context. Speculation: the trained model of characters (`models.characters`) and bigrams
of its own text; tokens a pass are counted, seconds are not. The results are written as JSON beside those that ship with
the course, "serving steps" and "speculation".
usage: python benchmarks/serving.py [--quick] [--out DIR | --record]
"""

import os
import time

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is loaded

import torch

from course_utils.costs import records
from course_utils.costs.measure import environment
from course_utils.models import characters
from course_utils.models.decoder import Decoder
from course_utils.serving.costs import fit
from course_utils.serving.latency import Mean
from course_utils.serving.measured import measure_acceptance, measure_steps, one_pass, own_text
from course_utils.serving.speculative import Bigrams, expected_tokens

SIZES = {"vocabulary": 256, "d_model": 384, "n_layers": 6, "n_heads": 6}
BATCHES = (1, 2, 4, 8, 16)
CONTEXTS = (64, 256, 1024)
PROMPTS = (32, 64, 128)
REPEATS = 15
GAMMAS = (1, 2, 4, 6)
PROMPT = 12
NEW = 80
TEXTS = 256
SEEDS = (0, 1, 2)


def steps(quick):
    torch.manual_seed(0)
    model = Decoder(**SIZES).eval()
    sizes = ((1, 2), (16, 32), (8,), 3) if quick else (BATCHES, CONTEXTS, PROMPTS, REPEATS)
    rows = measure_steps(model, *sizes, clock=time.process_time)
    line_fit = fit(*([row[key] for row in rows] for key in ("tokens", "context", "seconds")))
    for row in rows:
        row["fitted"] = line_fit.cost(row["tokens"], row["context"])
    base, per_token, per_context = line_fit.cost
    findings = [
        f"A step takes {base * 1e3:.2f} ms, {per_token * 1e6:.0f} µs more for each token that it computes and "
        f"{per_context * 1e6:.2f} µs for each cached token that it reads; R² is {line_fit.r_squared:.3f}, the largest "
        f"relative error {line_fit.largest_error:.0%}."
    ]
    settings = {"quick": quick, "command": "python benchmarks/serving.py --record", "sizes": SIZES, "threads": 1}
    settings |= {"repeats": sizes[-1], "clock": "process_time", "fit": list(line_fit.cost)}
    settings |= {"r_squared": line_fit.r_squared, "largest_error": line_fit.largest_error}
    return settings, rows, findings


def speculation(quick):
    model = characters.load("causal")
    text = characters.encode(characters.training_text()).tolist()
    held_out = characters.encode(characters.held_out_text()).tolist()
    n_texts, n_prompts, new = (8, 2, 10) if quick else (TEXTS, 10, NEW)
    begun = [text[37 * i : 37 * i + PROMPT] for i in range(n_texts)]
    drafter = Bigrams(own_text(model, begun, new), len(characters.alphabet()))
    prompts = [held_out[150 * i : 150 * i + PROMPT] for i in range(n_prompts)]
    rows = [
        {"gamma": gamma, "seed": seed} | measure_acceptance(one_pass(model), drafter, prompts, gamma, new, seed)
        for gamma in GAMMAS
        for seed in SEEDS
    ]
    for row in rows:
        row["expected"] = expected_tokens(row["alpha"], row["gamma"])
    alpha = Mean.of([row["alpha"] for row in rows]).mean
    written = {gamma: Mean.of([row["tokens_a_pass"] for row in rows if row["gamma"] == gamma]).mean for gamma in GAMMAS}
    findings = [
        f"Drafts of bigrams of the model's own text are kept with α = {alpha:.2f}; "
        f"a pass writes {', '.join(f'{mean:.2f} tokens with γ = {gamma}' for gamma, mean in written.items())}."
    ]
    settings = {"quick": quick, "command": "python benchmarks/serving.py --record", "model": "characters, causal"}
    settings |= {"temperature": 1.0, "own_text": n_texts * (PROMPT + new), "prompts": n_prompts, "new": new}
    return settings, rows, findings


def main(quick, folder):
    torch.set_num_threads(1)
    where = environment()
    for name, run in (("serving steps", steps), ("speculation", speculation)):
        settings, rows, findings = run(quick)
        print("\n".join(findings))
        print(f"written: {records.write(name, where, settings, rows, findings, folder)}")


if __name__ == "__main__":
    records.command_line(main, __doc__)
