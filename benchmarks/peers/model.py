"""The real model on the course's layers beside transformers, its tokenizer beside tokenizers', in one process.

Both get the same weights and the same vocabulary. First what must agree: the numbers of tokens on some megabytes of
text, logits on ten texts of up to 1,000 tokens, and greedy texts wherever the two best tokens are apart. Then the speed
on one thread, in turns: tokens written a second, and read a second; reading all weights once a token at the bandwidth
measured here is the limit of the first. They run in an environment of their own, which is made if it is not there.
usage: python benchmarks/peers/model.py [--venv DIR] [--quick]
"""

import argparse
import copy
import itertools
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).parents[1]))

import torch

from course_utils.costs.measure import ratio, time_together
from course_utils.models import real
from peers.venvs import ROOT, ensure

MOST_OFF, APART = 1e-3, 2e-3  # of logits: the bar, and where two implementations may choose differently
THEIRS = {"transformers": "sdpa", "transformers, attention written out": "eager"}
QUESTIONS = (
    "What is the capital of Italy? Answer briefly.",
    "Write a short story about a cat and a lighthouse.",
    "Name three prime numbers.",
    "Why is the sky blue?",
)


def texts() -> list[str]:
    """What is tokenised: the course's lessons, the documentation of Python that ships with it, plays, odd letters."""
    files = [*sorted((ROOT / "sources").rglob("*.md")), *sorted((ROOT / "course_utils/data").rglob("*.txt"))]
    odd = "Größe ² Ⅷ 12 ,3\t\n  x 😀 don't  5's\r\n\u3000日本 a\u0301 'll  1 000,5 \u00a0x  \n\n  9"
    return [file.read_text(encoding="utf-8") for file in files] + [odd]


def their_tokenizer(ours):
    """tokenizers' byte-level BPE with the same vocabulary and pairs, cut as SmolLM2's tokenizer.json says."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    theirs = Tokenizer(models.BPE(ours.numbers, list(ours.ranks)))
    cuts = [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    theirs.pre_tokenizer = pre_tokenizers.Sequence(cuts)
    return theirs


def their_model(ours):
    """transformers' Llama with the same weights. It pairs halves of a head, the course neighbours: rows change."""
    from transformers import LlamaConfig, LlamaForCausalLM

    blocks = ours.blocks
    layer = ours.blocks[0].attention
    sizes = {"hidden_size": layer.d_model, "intermediate_size": blocks[0].feed_forward.gate.out_features}
    sizes |= {"num_hidden_layers": len(blocks), "num_attention_heads": layer.n_heads}
    config = LlamaConfig(
        **sizes, vocab_size=ours.embedding.num_embeddings, num_key_value_heads=layer.n_kv_heads,
        rms_norm_eps=ours.norm.eps, rope_parameters={"rope_type": "default", "rope_theta": layer.rope.base},
        max_position_embeddings=8192, tie_word_embeddings=True, attention_bias=False,
    )  # fmt: skip
    theirs = LlamaForCausalLM(config).eval()

    def halves(weight, n_heads):
        return weight.view(n_heads, -1, 2, layer.d_model).transpose(1, 2).reshape(weight.shape)

    state = {"model.embed_tokens.weight": ours.embedding.weight, "model.norm.weight": ours.norm.weight}
    for i, block in enumerate(blocks):
        attention = block.attention
        gated = block.feed_forward
        parts = {"input_layernorm": block.attention_norm.weight, "mlp.gate_proj": gated.gate.weight}
        parts |= {"post_attention_layernorm": block.feed_forward_norm.weight, "mlp.up_proj": gated.up.weight}
        parts |= {"mlp.down_proj": gated.down.weight, "self_attn.v_proj": attention.v_proj.weight}
        parts |= {"self_attn.q_proj": halves(attention.q_proj.weight, layer.n_heads)}
        parts |= {"self_attn.k_proj": halves(attention.k_proj.weight, layer.n_kv_heads)}
        parts |= {"self_attn.o_proj": attention.out_proj.weight}
        state |= {f"model.layers.{i}.{name}.weight": weight for name, weight in parts.items()}
    state["lm_head.weight"] = state["model.embed_tokens.weight"]
    theirs.load_state_dict(state)
    return theirs


@torch.no_grad()
def same_logits(ours, theirs, length) -> str:
    """Return what is said of logits on ten texts of up to `length` tokens; raises SystemExit where ours are off.

    transformers rounds the angles of its rotation to float32, which shows on long texts. So both are also set beside
    the same model in float64, and where they are too far apart ours must be the nearer one.
    """
    numbers = ours.tokenizer.encode("".join(texts()))
    exact = copy.deepcopy(ours.model).double()
    worst = [0.0, 0.0, 0.0]
    for i in range(10):
        start = i * len(numbers) // 10
        tokens = torch.tensor([numbers[start : start + length * (i + 1) // 10]])
        mine, other, right = ours.model(tokens), theirs(tokens).logits, exact(tokens)
        differences = [(a.double() - b).abs().max().item() for a, b in ((mine, other), (mine, right), (other, right))]
        if differences[0] > MOST_OFF and differences[1] > min(differences[2], MOST_OFF):
            raise SystemExit(
                f"logits {differences[0]:.1e} apart, ours {differences[1]:.1e} from float64: the bar is {MOST_OFF}"
            )
        worst = [max(pair) for pair in zip(worst, differences, strict=True)]
    return "logits: at most {:.1e} apart; from float64 ours {:.1e}, theirs {:.1e}".format(*worst)


@torch.no_grad()
def same_words(ours, theirs, most) -> str:
    """Return what is said of greedy answers; raises SystemExit where one chose what the other ranks clearly lower."""
    same = 0
    for question in QUESTIONS:
        prompt = ours.tokenizer.chat(question)
        answer = list(ours.stream(prompt, most))
        logits = theirs(torch.tensor([prompt + answer])).logits[0, len(prompt) - 1 : -1]
        best = logits.topk(2)
        for token, chosen, (first, second) in zip(
            answer, best.indices[:, 0].tolist(), best.values.tolist(), strict=True
        ):
            if token != chosen and first - second > APART:
                raise SystemExit(f"{question}: {token} in place of {chosen}, which is better by {first - second:.4f}")
            same += token == chosen
    return f"greedy: {same} tokens the same, in {len(QUESTIONS)} answers; the rest within {APART}"


@torch.no_grad()
def speed(ours, theirs, tokens_to_write, tokens_to_read, rounds) -> None:
    """Print tokens a second and their ratio, and the share of the limit.

    transformers runs with PyTorch's fused attention, its default, and with attention written out, as ours is.
    """

    def with_attention(kind, call):
        theirs.set_attn_implementation(kind)
        return call()

    prompt = ours.tokenizer.chat(QUESTIONS[1])
    tokens = torch.tensor([prompt])
    options = {
        "max_new_tokens": tokens_to_write,
        "min_new_tokens": tokens_to_write,
        "do_sample": False,
        "pad_token_id": 0,
    }
    write = partial(theirs.generate, tokens, attention_mask=torch.ones_like(tokens), **options)
    writing = {"ours": lambda: list(itertools.islice(ours.stream(prompt, tokens_to_write), tokens_to_write))}
    writing |= {name: partial(with_attention, kind, write) for name, kind in THEIRS.items()}
    long = torch.tensor([ours.tokenizer.encode(texts()[0])[:tokens_to_read]])
    last = torch.tensor([long.shape[1] - 1])
    reading = {"ours": lambda: ours.model(long, at=last)}
    reading |= {
        name: partial(with_attention, kind, partial(theirs, long, logits_to_keep=1)) for name, kind in THEIRS.items()
    }
    for what, functions, n in (("written", writing, tokens_to_write), ("read", reading, long.shape[1])):
        times = time_together(functions, rounds, warmup=1)
        print(f"tokens {what} a second: ours {n / times['ours'].median:.1f}")
        for name in THEIRS:
            faster = ratio(times[name], times["ours"])
            print(f"  {name} {n / times[name].median:.1f}: ours {faster.median:.2f} times", end="")
            print(f" ({faster.low:.2f} to {faster.high:.2f})")
        if what == "written":
            share = n / times["ours"].median * seconds_to_read(ours.model)
            print(f"reading the weights once a token allows {1 / seconds_to_read(ours.model):.1f}: ours {share:.0%}")


def seconds_to_read(model) -> float:
    """Return how long one thread takes to read as many bytes as the weights have, the shortest of several times."""
    weights = {weight.data_ptr(): weight for weight in model.parameters()}.values()
    one = torch.ones(sum(weight.numel() for weight in weights))
    taken = []
    for _ in range(7):
        began = time.perf_counter()
        one.sum()
        taken.append(time.perf_counter() - began)
    return min(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--venv", type=Path, default=ROOT / "build" / "peers", help="folder of the peers' venvs")
    parser.add_argument("--quick", action="store_true", help="short texts and one round, to see that it runs")
    options = parser.parse_args()
    try:
        import tokenizers
        import transformers
    except ImportError:
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        ran = subprocess.run([ensure(options.venv, "transformers"), *sys.argv], env=environment)
        raise SystemExit(ran.returncode) from None
    print(f"transformers {transformers.__version__}, tokenizers {tokenizers.__version__}, torch {torch.__version__}")
    torch.set_num_threads(1)
    ours = real.load()

    peer = their_tokenizer(ours.tokenizer)
    checked = 0
    for text in texts():
        text = "".join(letter for letter in text if letter not in "\x04\x06\x13\x14\x16\x1d")  # no tokens, in neither
        if ours.tokenizer.encode(text) != peer.encode(text).ids or ours.tokenizer.decode(peer.encode(text).ids) != text:
            raise SystemExit(f"a text of {len(text)} letters has other tokens: {text[:60]!r}")
        checked += len(text.encode())
    print(f"tokens: the same on {checked:,} bytes, and the text comes back")

    theirs = their_model(ours.model)
    print(same_logits(ours, theirs, 200 if options.quick else 1000))
    print(same_words(ours, theirs, 8 if options.quick else 60))
    speed(ours, theirs, *((8, 50, 2) if options.quick else (64, 512, 5)))


if __name__ == "__main__":
    main()
