"""Byte pairs: what training merges, and that text comes back exactly."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.models import small_gpt
from course_utils.models.byte_pairs import BytePairs, cut, merge, train_merges

law = settings(deadline=None, max_examples=60, derandomize=True)
SOME = small_gpt.TEXT.read_bytes()[:20_000]
TRAINED = BytePairs(train_merges(SOME, 320))


@law
@given(st.one_of(st.binary(max_size=60), st.text(max_size=30).map(str.encode), st.text("aab \n.é", max_size=30)))
def test_any_bytes_come_back_exactly(text):
    expected = text.encode() if isinstance(text, str) else text
    assert b"".join(cut(expected)) == expected
    assert TRAINED.decode(TRAINED.encode(text)) == expected
    assert BytePairs().encode(text) == list(expected)


def test_the_most_frequent_pair_is_merged_first_and_the_smallest_of_equals():
    assert train_merges(b"abab cdcdcd", 257) == [(ord("c"), ord("d"))]
    assert train_merges(b"zyzy cdcd", 257) == [(ord("c"), ord("d"))]
    assert train_merges(b"abc abc abd", 258) == [(ord("a"), ord("b")), (ord(" "), 256)]


def test_a_merge_takes_pairs_from_left_to_right_without_overlap():
    assert merge([1, 1, 1], (1, 1), 9) == [9, 1]
    assert merge([1, 1, 1, 1, 2, 1], (1, 1), 9) == [9, 9, 2, 1]
    assert train_merges(b"aaaa", 300) == [(97, 97), (256, 256)]


def test_training_counts_as_counting_anew_would():
    """Each merge is the most frequent pair of all words when they are encoded with the merges before it."""
    words = [list(word) for word in cut(SOME[:3000])]
    for number, best in enumerate(train_merges(SOME[:3000], 300)):
        counts = {}
        for word in words:
            for pair in pairwise(word):
                counts[pair] = counts.get(pair, 0) + 1
        assert best == min(counts, key=lambda pair: (-counts[pair], pair)), number
        words = [merge(word, best, 256 + number) for word in words]


def test_encoding_applies_the_merges_in_their_order():
    for text in (b"the king and the lords", b" thee", SOME[500:900]):
        words = [list(word) for word in cut(text)]
        for number, pair in enumerate(TRAINED.merges):
            words = [merge(word, pair, 256 + number) for word in words]
        assert TRAINED.encode(text) == [token for word in words for token in word]


def test_a_space_belongs_to_the_word_after_it_and_no_token_spans_two_words():
    assert cut(b"to be,  or\n\nnot") == [b"to", b" be", b",", b" ", b" or", b"\n\n", b"not"]
    tokens = [TRAINED.bytes_of(token) for token in range(TRAINED.vocabulary)]
    assert b" the" in tokens
    assert not [token for token in tokens if b" " in token[1:]]


def test_there_are_as_many_tokens_as_asked_for_or_as_the_text_can_teach():
    assert TRAINED.vocabulary == 320 and len(TRAINED.merges) == 64
    assert len(train_merges(b"ab ab", 1000)) == 2
    assert train_merges(b"", 300) == train_merges(b"a", 300) == train_merges(SOME, 256) == []


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="vocabulary"):
        train_merges(b"abc", 255)
    with pytest.raises(ValueError, match=r"merge 1 is \(97, 300\): tokens up to 256 are there"):
        BytePairs([(97, 98), (97, 300)])
    with pytest.raises(ValueError, match="token 400 is unknown: they are numbered from 0 to 319"):
        TRAINED.decode([400])
