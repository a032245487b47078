"""Day 9: the answers to its exercises, and the mistakes that people make in them.

Those marked with a source are bugs that were public in a library or in a model's code.
"""

from course_utils.checks.judge.exercise import Exercise, Mistake

# One merge ------------------------------------------------------------------------------------------------------------


def counted(tokens, step=1):
    """How often each pair of neighbours comes, in the order in which they come first."""
    counts = {}
    for i in range(0, len(tokens) - 1, step):
        pair = tokens[i], tokens[i + 1]
        counts[pair] = counts.get(pair, 0) + 1
    return counts


def counted_apart(tokens):
    """The same, without places that overlap."""
    counts = {}
    for pair in counted(tokens):
        i = 0
        while i < len(tokens) - 1:
            if (tokens[i], tokens[i + 1]) == pair:
                counts[pair] = counts.get(pair, 0) + 1
                i += 1
            i += 1
    return counts


def counted_either_way(tokens):
    """The same, where a pair and its reverse are one."""
    counts = counted(tokens)
    return {pair: counts[pair] + (counts.get(pair[::-1], 0) if pair[0] != pair[1] else 0) for pair in counts}


def replaced(tokens, pair, new, most=None, kept=(), reverse=False, last=1):
    """The tokens with the pair replaced from the left, at most so often; `kept` comes after each new token."""
    out, i, count = [], 0, 0
    while i < len(tokens):
        here = tuple(tokens[i : i + 2])
        found = here == pair or (reverse and here == pair[::-1])
        if found and i < len(tokens) - last and (most is None or count < most):
            out += [new, *kept]
            count += 1
            i += 2
        else:
            out.append(tokens[i])
            i += 1
    return out


def replaced_from_the_right(tokens, pair, new):
    return replaced(tokens[::-1], pair[::-1], new)[::-1]


def replaced_at_each_place(tokens, pair, new):
    """Places that overlap are all replaced."""
    out, i = [], 0
    while i < len(tokens):
        if tuple(tokens[i : i + 2]) == pair:
            out.append(new)
            i += 1 if tuple(tokens[i + 1 : i + 3]) == pair else 2
        else:
            out.append(tokens[i])
            i += 1
    return out


def replaced_by_another_loop(tokens, pair, new):
    """Only pairs of neighbours are looked at: what is left at the end is lost."""
    out, i = [], 0
    while i < len(tokens) - 1:
        found = (tokens[i], tokens[i + 1]) == pair
        out.append(new if found else tokens[i])
        i += 2 if found else 1
    return out


def most_often(counts, tie=lambda pair: pair):
    return min(counts, key=lambda pair: (-counts[pair], tie(pair)))


def merging(count=counted, choose=most_often, replace=replaced, given=lambda pair, merged: (pair, merged)):
    """merge_step with one step exchanged for a wrong one; every step not named is right."""

    def merge_step(tokens, new):
        pair = choose(count(tokens))
        return given(pair, replace(tokens, pair, new))

    return merge_step


MERGE_MISTAKES = (
    Mistake("the first pair of a tie", merging(choose=lambda counts: max(counts, key=counts.get)),
        "Of pairs that come equally often, you take the one that comes first in the text. Take the smallest: "
        "min over (−count, pair) does."),
    Mistake("the last pair of a tie", merging(choose=lambda counts: max(reversed(list(counts)), key=counts.get)),
        "Of pairs that come equally often, you take the one that comes last in the text. Take the smallest."),
    Mistake("the largest pair of a tie", merging(choose=lambda counts: max(counts, key=lambda pair: (counts[pair],
            pair))),
        "Of pairs that come equally often, you take the largest. Take the smallest: max over (count, pair) looks for "
        "the largest of both."),
    Mistake("ties by the first token alone", merging(choose=lambda counts: most_often(counts, lambda pair: pair[0])),
        "Of pairs that come equally often, only the first tokens are compared. Where these are equal, the second "
        "decides."),
    Mistake("ties by the second token", merging(choose=lambda counts: most_often(counts, lambda pair: pair[::-1])),
        "Of pairs that come equally often, the second tokens are compared first. Compare the first ones first."),
    Mistake("the rarest pair", merging(choose=lambda counts: min(counts, key=lambda pair: (counts[pair], pair))),
        "You take the pair that comes least often. Take the one that comes most often."),
    Mistake("the smallest pair", merging(choose=min),
        "You take the smallest pair of all. Only of those that come most often, take the smallest."),
    Mistake("the first pair", merging(choose=lambda counts: next(iter(counts))),
        "You take the first pair of the text. Count all pairs, and take the one that comes most often."),
    Mistake("counted without overlap", merging(count=counted_apart),
        "You count pairs without overlap. Each place counts: in 7 7 7 the pair (7, 7) comes twice."),
    Mistake("counted at every other place", merging(count=lambda tokens: counted(tokens, 2)),
        "You count only the pairs that begin at places 0, 2, 4, … Each token but the last begins a pair."),
    Mistake("a pair and its reverse as one", merging(count=counted_either_way),
        "You count (a, b) and (b, a) together. They are two different pairs."),
    Mistake("the last pair not counted", merging(count=lambda tokens: counted(tokens[:-1])),
        "The last pair is not counted. With n tokens there are n − 1 pairs: range(len(tokens) - 1)."),
    Mistake("the reverse replaced too", merging(replace=lambda tokens, pair, new: replaced(tokens, pair, new,
            reverse=True)),
        "You replace (b, a) as well as (a, b). The order of the two tokens matters."),
    Mistake("every place replaced", merging(replace=replaced_at_each_place),
        "Places that overlap are all replaced. A token that has become part of the new one is used up: go on behind "
        "it."),
    Mistake("replaced from the right", merging(replace=replaced_from_the_right),
        "You replace from the right. From the left, 7 7 7 becomes 256 7."),
    Mistake("replaced once", merging(replace=lambda tokens, pair, new: replaced(tokens, pair, new, most=1)),
        "You replace only the first place. Replace the pair wherever it comes."),
    Mistake("the last pair not replaced", merging(replace=lambda tokens, pair, new: replaced(tokens, pair, new,
            last=2)),
        "A pair at the very end is not replaced. The loop ends one place too early."),
    Mistake("the last token lost", merging(replace=replaced_by_another_loop),
        "The last token is lost where it is not part of a merge. A loop over pairs never looks at it alone."),
    Mistake("the second token kept", merging(replace=lambda tokens, pair, new: replaced(tokens, pair, new,
            kept=pair[1:])),
        "The second token of a pair stays behind the new one. Skip both."),
    Mistake("the pair kept", merging(replace=lambda tokens, pair, new: replaced(tokens, pair, new, kept=pair)),
        "The pair stays behind the new token. The new token takes the place of both."),
    Mistake("the pair dropped", merging(replace=lambda tokens, pair, new: [
            token for token in replaced(tokens, pair, new) if token != new]),
        "The pair is taken out, and nothing put in its place. Put the new token there."),
    Mistake("nothing replaced", merging(replace=lambda tokens, pair, new: list(tokens)),
        "The pair is right, and the tokens are as they were. Replace the pair by the new token."),
    Mistake("both tokens replaced, one by one", merging(replace=lambda tokens, pair, new: [
            new if token in pair else token for token in tokens]),
        "Each token of the pair becomes the new one, wherever it is. Only the two side by side do, together as one."),
    Mistake("the two results exchanged", merging(given=lambda pair, merged: (merged, pair)),
        "The two results are exchanged. The pair comes first, then the tokens."),
)  # fmt: skip


# Encode and decode ----------------------------------------------------------------------------------------------------


def encoding(replace=replaced, order=lambda merges: list(enumerate(merges)), first=256):
    """encode with one step exchanged for a wrong one; every step not named is right. order: (rank, pair) in turn."""

    def encode(text, merges):
        tokens = list(text)
        for rank, pair in order(merges):
            tokens = replace(tokens, pair, first + rank)
        return tokens

    return encode


def longest_first(text, merges):
    """From the left, the longest token that fits."""
    known = {decoding()([256 + rank], merges): 256 + rank for rank in reversed(range(len(merges)))}
    tokens, i = [], 0
    while i < len(text):
        fits = [each for each in known if text[i:].startswith(each)]
        found = max(fits, key=len, default=text[i : i + 1])
        tokens.append(known.get(found, text[i]))
        i += len(found)
    return tokens


def first_place_first(text, merges):
    """From the left, whatever pair can be merged, until there is none."""
    tokens = list(text)
    while True:
        found = [i for i in range(len(tokens) - 1) if (tokens[i], tokens[i + 1]) in merges]
        if not found:
            return tokens
        i = found[0]
        tokens[i : i + 2] = [256 + merges.index((tokens[i], tokens[i + 1]))]


def decoding(first=256, unfold=lambda left, right: left + right, deep=True, order=lambda tokens: tokens,
        made=lambda parts: b"".join(parts)):  # fmt: skip
    """decode with one step exchanged for a wrong one; every step not named is right."""

    def decode(tokens, merges):
        words = [bytes([byte]) for byte in range(first)]
        for left, right in merges:
            words.append(unfold(words[left], words[right]) if deep else bytes([left % 256, right % 256]))
        return made([words[token] for token in order(tokens)])

    return decode


def unfolded_once(tokens, merges):
    return bytes(byte for token in tokens for byte in ((token,) if token < 256 else merges[token - 256]))


def tokenised(name, message, encode=None, decode=None):
    return Mistake(name, {"encode": encode or encoding(), "decode": decode or decoding()}, message)


TOKEN_MISTAKES = (
    tokenised("the longest token first", "encode takes the longest token that fits, from the left. The merges come in "
        "the order of the list, each in the whole text, as they were learned.", longest_first),
    tokenised("the first place first", "encode merges the first pair in the text that it finds in the list. The first "
        "merge of the list goes first, wherever it is in the text.", first_place_first),
    tokenised("the last merge first", "encode begins with the last merge of the list. Begin with the first: later "
        "ones are made of its token.", encoding(order=lambda merges: list(enumerate(merges))[::-1])),
    tokenised("each merge once", "encode makes each merge at one place only. A pair is replaced wherever it is.",
        encoding(replace=lambda tokens, pair, new: replaced(tokens, pair, new, most=1))),
    tokenised("merges from the right", "encode merges from the right. From the left, a a a becomes 256 97.",
        encoding(replace=replaced_from_the_right)),
    tokenised("places that overlap", "encode replaces places that overlap. A token that has become part of a merge is "
        "used up.", encoding(replace=replaced_at_each_place)),
    tokenised("the last token lost", "encode loses the last token where it is not part of a merge.",
        encoding(replace=replaced_by_another_loop)),
    tokenised("the last pair not replaced", "encode does not look at the last pair. The loop ends one place too early.",
        encoding(replace=lambda tokens, pair, new: replaced(tokens, pair, new, last=2))),
    tokenised("the second token kept", "encode leaves the second token of a pair behind the new one. Skip both.",
        encoding(replace=lambda tokens, pair, new: replaced(tokens, pair, new, kept=pair[1:]))),
    tokenised("the reverse too", "encode merges (b, a) as well as (a, b). The order of the two matters.",
        encoding(replace=lambda tokens, pair, new: replaced(tokens, pair, new, reverse=True))),
    tokenised("the first merge alone", "encode makes the first merge only. Go through the whole list.",
        encoding(order=lambda merges: list(enumerate(merges))[:1])),
    tokenised("without the last merge", "encode leaves out the last merge of the list.",
        encoding(order=lambda merges: list(enumerate(merges))[:-1])),
    tokenised("without the first merge", "encode leaves out the first merge of the list.",
        encoding(order=lambda merges: list(enumerate(merges))[1:])),
    tokenised("one number too many", "encode numbers the merges from 257. There are 256 bytes, 0 to 255, so merge 0 "
        "makes 256.", encoding(first=257)),
    tokenised("one number too few", "encode numbers the merges from 255, which is a byte. Merge 0 makes 256.",
        encoding(first=255)),
    tokenised("numbers from 0", "encode numbers the merges from 0, where there are bytes. Merge 0 makes 256.",
        encoding(first=0)),
    tokenised("bytes as they are", "encode returns the bytes as they are. Apply the merges.",
        lambda text, merges: list(text)),
    tokenised("undone once", "decode undoes one merge only. What it finds may be tokens of merges again.",
        decode=unfolded_once),
    tokenised("larger tokens cut", "decode takes tokens of earlier merges for bytes. They stand for the bytes of two "
        "tokens.", decode=decoding(deep=False)),
    tokenised("the pair exchanged", "decode puts the right token of a pair first. The left one comes first.",
        decode=decoding(unfold=lambda left, right: right + left)),
    tokenised("tokens in reverse", "decode gives the tokens in reverse. Their order is that of the text.",
        decode=decoding(order=lambda tokens: tokens[::-1])),
    tokenised("bytes in reverse", "decode gives the bytes in reverse. Their order is that of the text.",
        decode=decoding(made=lambda parts: b"".join(parts)[::-1])),
    tokenised("bytes that are no text replaced", "decode goes through a text and puts � where the bytes are none. "
        "Bytes need not be a text: return them as they are.",
        decode=decoding(made=lambda parts: b"".join(parts).decode("utf-8", "replace").encode())),
    tokenised("bytes that are no text left out", "decode leaves out bytes that are no text. Return all of them.",
        decode=decoding(made=lambda parts: b"".join(parts).decode("utf-8", "ignore").encode())),
    tokenised("only the left token", "decode gives only the left token of each pair.",
        decode=decoding(unfold=lambda left, right: left)),
    tokenised("only the right token", "decode gives only the right token of each pair.",
        decode=decoding(unfold=lambda left, right: right)),
)  # fmt: skip


EXERCISES = {
    "merge_step": Exercise(2, {"merge_step": merging()}, MERGE_MISTAKES),
    "encode_decode": Exercise(3, {"encode": encoding(), "decode": decoding()}, TOKEN_MISTAKES),
}
