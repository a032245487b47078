"""Day 9: the answers to its exercises, and the mistakes that people make in them.

Those marked with a source are bugs that were public in a library or in a model's code.
"""

import math

import numpy as np

from course_utils.checks.judge.exercise import Exercise, Mistake
from course_utils.loader import lazy

torch = lazy("torch")  # a page has none, and needs it for one exercise alone

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


# The loss with padding ------------------------------------------------------------------------------------------------


def log_sum_exp(logits, axis=-1):
    most = logits.max(axis=axis, keepdims=True)
    return (most + np.log(np.exp(logits - most).sum(axis=axis, keepdims=True))).squeeze(axis)


def losses_of(logits, targets):
    """The loss of each token, of rows of logits (n, V) and targets (n)."""
    return log_sum_exp(logits) - logits[np.arange(len(targets)), targets]


def above(logits):
    """The sum of exps with the largest logit of each token taken off: from 1 to the size of the vocabulary."""
    return np.exp(log_sum_exp(logits) - logits.max(axis=-1))


def real_places(targets, lengths):
    return np.arange(targets.shape[1]) < lengths[:, None]


def over_real(real=real_places, losses=losses_of, mean=lambda losses, real: losses.mean()):
    """padded_loss with one step exchanged for a wrong one; every step not named is right.

    real(targets, lengths): which places count. mean(losses, real): of the losses of these, one after the other.
    """

    def padded_loss(logits, targets, lengths):
        counted = real(targets, lengths)
        return mean(losses(logits[counted], targets[counted]), counted)

    return padded_loss


def in_a_grid(losses, real):
    """The losses at their places (B, T), 0 elsewhere."""
    grid = np.zeros(real.shape)
    grid[real] = losses
    return grid


def every_place(logits, targets, lengths):
    """The losses of all places (B, T), padding too, with whatever its targets are."""
    words = np.clip(targets, 0, logits.shape[-1] - 1)
    return log_sum_exp(logits) - np.take_along_axis(logits, words[:, :, None], axis=2)[:, :, 0]


def with_a_mask(logits, targets, lengths):
    real = real_places(targets, lengths)
    return (every_place(logits, targets, lengths) * real).sum() / real.sum()


def over_axis(axis):
    """The log-sum-exp over another axis than that of the vocabulary."""

    def padded_loss(logits, targets, lengths):
        sums = np.expand_dims(log_sum_exp(logits, axis), axis)
        return losses_over_real(sums - logits, targets, lengths)

    return padded_loss


def losses_over_real(surprise, targets, lengths):
    """The mean of what each real target has in `surprise` (B, T, V)."""
    real = real_places(targets, lengths)
    return surprise[real, targets[real]].mean()


def shifted_targets(logits, targets, lengths):
    """The targets are moved by one more place."""
    real = real_places(targets, lengths)[:, 1:]
    return losses_of(logits[:, :-1][real], targets[:, 1:][real]).mean()


def by_probability(least):
    def losses(logits, targets):
        exps = np.exp(logits - logits.max(axis=-1, keepdims=True))
        shares = exps / exps.sum(axis=-1, keepdims=True)
        return -np.log(shares[np.arange(len(targets)), targets] + least)

    return losses


def without_a_shift(logits, targets):
    return np.log(np.exp(logits).sum(axis=-1)) - logits[np.arange(len(targets)), targets]


def with_one_shift(logits, targets):
    """The largest logit of all tokens is taken off everywhere."""
    most = logits.max()
    return most + np.log(np.exp(logits - most).sum(axis=-1)) - logits[np.arange(len(targets)), targets]


LOSS_MISTAKES = (
    Mistake("exp without the largest logit taken off", over_real(losses=without_a_shift),
        "exp overflows: take the largest logit of each token off before exp, and add it again after the logarithm.",
        overflow=True),
    Mistake("one shift for all tokens", over_real(losses=with_one_shift),
        "One largest logit is taken off everywhere, so that exp gives 0 for tokens whose logits are far below. Each "
        "token has its own: axis=-1, keepdims=True."),
    Mistake("padding counts too", lambda logits, targets, lengths: every_place(logits, targets, lengths).mean(),
        "Padding is in the sum as well as in the count. Leave out all places from lengths[b] on."),
    Mistake("divided by all places", over_real(mean=lambda losses, real: losses.sum() / real.size),
        "The sum is over real tokens, but it is divided by the number of all places. Divide by the number of real "
        "tokens."),
    Mistake("multiplied by a mask", with_a_mask,
        "Padding is multiplied by 0, and 0 · NaN is NaN. Choose the real places first: logits[real], or np.where on "
        "the losses."),
    Mistake("the mean of the rows' means", over_real(mean=lambda losses, real: (in_a_grid(losses, real).sum(axis=1)
            / real.sum(axis=1)).mean()),
        "Each row has its own mean, and these are averaged: tokens of short rows count for more. Sum over all real "
        "tokens, then divide once."),
    Mistake("divided by the rows", over_real(mean=lambda losses, real: losses.sum() / len(real)),
        "The sum is divided by the number of rows. Divide by the number of real tokens."),
    Mistake("the sum", over_real(mean=lambda losses, real: losses.sum()),
        "This is the sum. Divide by the number of real tokens."),
    Mistake("one place more", over_real(real=lambda targets, lengths: np.arange(targets.shape[1]) <= lengths[:, None]),
        "One place of padding counts in each row. Places 0 to lengths[b] − 1 are real."),
    Mistake("one place fewer", over_real(real=lambda targets, lengths: np.arange(targets.shape[1]) < lengths[:, None]
            - 1),
        "The last real token of each row is left out. Places 0 to lengths[b] − 1 are real."),
    Mistake("the first place left out", over_real(real=lambda targets, lengths: real_places(targets, lengths)
            & (np.arange(targets.shape[1]) > 0)),
        "The first token of each row is left out. Its target is given like all others."),
    Mistake("padding on the left", over_real(real=lambda targets, lengths: real_places(targets, lengths)[:, ::-1]),
        "The last places of each row are taken for real ones. The first lengths[b] are: the padding is on the right."),
    Mistake("the padding alone", over_real(real=lambda targets, lengths: ~real_places(targets, lengths)),
        "The mean is over the padding. It is over all other places."),
    Mistake("the first row's length for all", over_real(real=lambda targets, lengths: real_places(targets,
            np.full_like(lengths, lengths[0]))),
        "All rows have the length of the first. Each has its own: lengths[:, None]."),
    Mistake("the longest row's length for all", over_real(real=lambda targets, lengths: real_places(targets,
            np.full_like(lengths, lengths.max()))),
        "All rows have the length of the longest. Each has its own: lengths[:, None]."),
    Mistake("targets moved once more", shifted_targets,
        "The targets are moved by one place. They are moved already: targets[b, t] is what comes after token t."),
    Mistake("the sum over the places", over_axis(1),
        "The log-sum-exp runs over the places. It runs over the vocabulary, the last axis."),
    Mistake("the sum over the rows", over_axis(0),
        "The log-sum-exp runs over the rows. It runs over the vocabulary, the last axis."),
    Mistake("in bits", over_real(mean=lambda losses, real: losses.mean() / np.log(2)),
        "The loss is in bits. The statement asks for nats: np.log."),
    Mistake("the perplexity", over_real(mean=lambda losses, real: np.exp(losses.mean())),
        "This is the perplexity, e to the loss. Return the loss itself."),
    Mistake("the sign", over_real(mean=lambda losses, real: -losses.mean()),
        "The sign is wrong: a loss is log-sum-exp minus the target's logit, at least 0."),
    Mistake("the largest logit", over_real(losses=lambda logits, targets: logits.max(axis=-1) - logits[
            np.arange(len(targets)), targets]),
        "The target's logit is taken from the largest. Take it from the log-sum-exp of all."),
    Mistake("log-sum-exp alone", over_real(losses=lambda logits, targets: log_sum_exp(logits)),
        "The target's logit is not subtracted. The loss is log-sum-exp minus the logit of the target."),
    Mistake("the target's logit alone", over_real(losses=lambda logits, targets: -logits[np.arange(len(targets)),
            targets]),
        "This is minus the target's logit. Log-sum-exp is missing."),
    Mistake("a small number added", over_real(losses=by_probability(1e-9)),
        "A small number is added to the probability before the logarithm, so no loss is above a bound. With "
        "log-sum-exp none is needed."),
    Mistake("the logarithm of a probability", over_real(losses=by_probability(0)),
        "A probability is rounded to 0 before its logarithm is taken. Subtract the target's logit from log-sum-exp."),
    Mistake("the largest logit not added again", over_real(losses=lambda logits, targets: losses_of(logits, targets)
            - logits.max(axis=-1)),
        "The largest logit is taken off before exp, and not added again after the logarithm."),
    Mistake("no logarithm", over_real(losses=lambda logits, targets: losses_of(logits, targets) + above(logits)
            - np.log(above(logits))),
        "The sum of exps is not taken to its logarithm."),
    Mistake("a logarithm to base 2", over_real(losses=lambda logits, targets: losses_of(logits, targets)
            + np.log2(above(logits)) - np.log(above(logits))),
        "The logarithm of the sum is one to base 2. exp needs the natural one: np.log."),
    Mistake("the last row left out", over_real(real=lambda targets, lengths: real_places(targets, lengths)
            & (np.arange(len(lengths)) < len(lengths) - 1)[:, None]),
        "The last row is left out."),
    Mistake("the first row left out", over_real(real=lambda targets, lengths: real_places(targets, lengths)
            & (np.arange(len(lengths)) > 0)[:, None]),
        "The first row is left out."),
    Mistake("the largest loss", over_real(mean=lambda losses, real: losses.max()),
        "This is the largest loss of a token. Take the mean."),
    Mistake("one minus the probability", over_real(losses=lambda logits, targets: 1 - np.exp(-losses_of(logits,
            targets))),
        "This is 1 minus the probability of the target. The loss is minus its logarithm."),
)  # fmt: skip


# A sampler ------------------------------------------------------------------------------------------------------------


def shares_of(logits):
    exps = np.exp(logits - logits.max())
    return exps / exps.sum()


def likeliest_first(shares):
    return np.argsort(-shares, kind="stable")


def inverse(shares, kept, u):
    """The first token whose running sum is above u; shares are those of the kept tokens and sum to 1."""
    return kept[min((np.cumsum(shares) <= u).sum(), len(kept) - 1)]


def sampling(share=shares_of, order=likeliest_first, count=lambda sorted_, p: (np.cumsum(sorted_) < p).sum() + 1,
        again=lambda sorted_, logits, p: sorted_ / sorted_.sum(), drawn=inverse,
        given=lambda kept, token: (kept, token)):  # fmt: skip
    """top_p with one step exchanged for a wrong one; every step not named is right.

    count(sorted_, p): how many tokens are kept. again(sorted_, logits, p): the kept shares divided by their sum.
    """

    def top_p(logits, p, u):
        shares = share(logits)
        words = order(shares)
        kept = words[: max(count(shares[words], p), 1)]
        return given(kept, drawn(again(shares[kept], logits[kept], p), kept, u))

    return top_p


def within(bound):
    """How many tokens have more than a bound(shares, p)."""
    return lambda sorted_, p: (sorted_ >= bound(sorted_, p)).sum()


TOP_P_MISTAKES = (
    Mistake("exp without the largest logit taken off", sampling(share=lambda logits: np.exp(logits)
            / np.exp(logits).sum()),
        "exp overflows: take the largest logit off first.", overflow=True),
    Mistake("without the token that brings it to p", sampling(count=lambda sorted_, p: (np.cumsum(sorted_) <= p).sum()),
        "The token with which the running sum reaches p is left out, so less than p is kept. The kept tokens have p or "
        "more."),  # a bug of many samplers
    Mistake("one token more", sampling(count=lambda sorted_, p: (np.cumsum(sorted_) < p).sum() + 2),
        "One token too many is kept. The sum before the last kept token is below p."),
    Mistake("more than p", sampling(count=lambda sorted_, p: (np.cumsum(sorted_) <= p).sum() + 1),
        "Where the running sum is p exactly, one more token is kept. p itself is enough."),
    Mistake("the unlikeliest first", sampling(order=lambda shares: np.argsort(shares, kind="stable")),
        "The tokens are sorted in ascending order. The likeliest comes first."),
    Mistake("not sorted", sampling(order=lambda shares: np.arange(len(shares))),
        "The tokens are kept in the order of the vocabulary. Sort them: the likeliest comes first."),
    Mistake("equally likely tokens in reverse", sampling(order=lambda shares: np.argsort(shares, kind="stable")[::-1]),
        "Of equally likely tokens the larger number comes first: turning a sorted list around does that. "
        'Sort minus the probabilities: np.argsort(-p, kind="stable").'),
    Mistake("not divided by the sum", sampling(again=lambda sorted_, logits, p: sorted_),
        "The kept probabilities are not divided by their sum, so their running sum ends below 1."),
    Mistake("divided by p", sampling(again=lambda sorted_, logits, p: sorted_ / max(p, 1e-9)),
        "The kept probabilities are divided by p. Divide by their own sum, which is p or more."),
    Mistake("softmax of probabilities", sampling(again=lambda sorted_, logits, p: shares_of(sorted_)),
        "A softmax of the kept probabilities is taken. Divide them by their sum."),
    Mistake("drawn in the order of the vocabulary", sampling(drawn=lambda shares, kept, u: inverse(
            shares[np.argsort(kept)], np.sort(kept), u)),
        "For the draw the kept tokens are in the order of the vocabulary. The likeliest comes first there, too."),
    Mistake("the place in the list", sampling(drawn=lambda shares, kept, u: inverse(shares, np.arange(len(kept)), u)),
        "What you return is a place among the kept tokens. Return the number of the token: kept[place]."),
    Mistake("always the likeliest", sampling(drawn=lambda shares, kept, u: kept[0]),
        "The token is always the likeliest. u decides: the first token whose running sum is above u."),
    Mistake("always the last", sampling(drawn=lambda shares, kept, u: kept[-1]),
        "The token is always the last of those kept. u decides: the first token whose running sum is above u."),
    Mistake("counted from the other end", sampling(drawn=lambda shares, kept, u: inverse(shares, kept, 1 - u)),
        "The draw runs from the other end: 1 − u in place of u."),
    Mistake("one token too early", sampling(drawn=lambda shares, kept, u: kept[max((np.cumsum(shares) <= u).sum() - 1,
            0)]),
        "The drawn token is one too early: the first whose running sum is above u."),
    Mistake("one token too late", sampling(drawn=lambda shares, kept, u: kept[min((np.cumsum(shares) <= u).sum() + 1,
            len(kept) - 1)]),
        "The drawn token is one too late: the first whose running sum is above u."),
    Mistake("u on a bound", sampling(drawn=lambda shares, kept, u: kept[min((np.cumsum(shares) < u).sum(),
            len(kept) - 1)]),
        "Where u is equal to a running sum, the token before it is drawn. The running sum has to be above u: "
        'np.searchsorted(sums, u, side="right").'),
    Mistake("tokens above p", sampling(count=within(lambda sorted_, p: p)),
        "Tokens are kept that have p or more alone. Keep the fewest whose probabilities together have p or more."),
    Mistake("tokens above 1 − p", sampling(count=within(lambda sorted_, p: 1 - p)),
        "Tokens are kept that have 1 − p or more alone. Keep the fewest whose probabilities together have p or more."),
    Mistake("tokens near the likeliest", sampling(count=within(lambda sorted_, p: p * sorted_[0])),
        "Tokens are kept that have p times the largest probability or more, which is another method (min-p). Keep the "
        "fewest that together have p or more."),
    Mistake("a share of the vocabulary", sampling(count=lambda sorted_, p: int(np.ceil(p * len(sorted_)))),
        "A share of the tokens is kept, of all that there are. p is a share of the probability."),
    Mistake("all tokens", sampling(count=lambda sorted_, p: len(sorted_)),
        "All tokens are kept. Keep the fewest whose probabilities together have p or more."),
    Mistake("the likeliest alone", sampling(count=lambda sorted_, p: 1),
        "Only the likeliest token is kept, as if it had p alone. Are the exps divided by their sum? Keep the fewest "
        "whose probabilities together have p or more."),
    Mistake("logits in place of probabilities", sampling(share=lambda logits: logits / logits.sum()),
        "The logits are divided by their sum. Probabilities are their softmax."),
    Mistake("kept in the order of the vocabulary", sampling(given=lambda kept, token: (np.sort(kept), token)),
        "The kept tokens are in the order of the vocabulary. Return the likeliest first."),
    Mistake("the two results exchanged", sampling(given=lambda kept, token: (token, kept)),
        "The two results are exchanged. The kept tokens come first, then the drawn one."),
)  # fmt: skip


# Batches --------------------------------------------------------------------------------------------------------------


def cut(tokens, held_out, part):
    """The tokens of a part."""
    training = len(tokens) - held_out
    return tokens[training:] if part == "held out" else tokens[:training]


def drawing(cut=cut, count=lambda n, context: n - context, start=lambda u, count: int(u * count), ahead=1,
        given=lambda inputs, targets: (inputs, targets)):  # fmt: skip
    """batch with one step exchanged for a wrong one; every step not named is right. ahead: of a target."""

    def batch(tokens, held_out, part, context, u):
        own = cut(tokens, held_out, part)
        starts = [start(each, count(len(own), context)) for each in u]
        return given(*(np.array([own[s + more : s + more + context] for s in starts]) for more in (0, ahead)))

    return batch


def windows(first, last, start=lambda u, count: int(u * count)):
    """batch with windows of the whole text, that begin at first(…) to last(…) − 1."""

    def batch(tokens, held_out, part, context, u):
        sizes = len(tokens), held_out, context
        low, high = first(part, *sizes), last(part, *sizes)
        starts = np.array([low + start(each, high - low) for each in u])[:, None]
        places = np.arange(context)
        return tokens[starts + places], tokens[starts + places + 1]

    return batch


def held(part):
    return part == "held out"


BATCH_MISTAKES = (
    Mistake("windows of the whole text", windows(lambda part, n, held_out, context: 0,
            lambda part, n, held_out, context: n - context),
        "Windows are drawn from the whole text, so that training sees what is held out. Cut first, then draw."),
    Mistake("targets beyond the training part", windows(lambda part, n, held_out, context: held(part) * (n - held_out),
            lambda part, n, held_out, context: min((n if held(part) else n - held_out) - context + 1, n - context)),
        "The last target of the last training window is a token that is held out. n tokens have n − context windows, "
        "since a target lies one place further."),
    Mistake("inputs beyond the training part", windows(lambda part, n, held_out, context: held(part) * (n - held_out),
            lambda part, n, held_out, context: n - context if held(part) else min(n - held_out, n - context)),
        "Windows begin in the training part and end in the one that is held out. All of a window and its targets lie "
        "in one part."),
    Mistake("held out windows that begin in the training part", windows(
            lambda part, n, held_out, context: max(n - held_out - context, 0) if held(part) else 0,
            lambda part, n, held_out, context: n - context if held(part) else n - held_out - context),
        "Windows of the part that is held out begin in the training part. All of a window lies in one part."),
    Mistake("the first tokens held out", drawing(cut=lambda tokens, held_out, part: tokens[:held_out] if held(part)
            else tokens[held_out:]),
        "The first tokens are held out. The last ones are."),
    Mistake("the parts exchanged", drawing(cut=lambda tokens, held_out, part: cut(tokens, held_out, "train" if held(
            part) else "held out")),
        "The parts are exchanged. The last held_out tokens are held out, and the others are for training."),
    Mistake("the training part whatever is asked", drawing(cut=lambda tokens, held_out, part: cut(tokens, held_out,
            "train")),
        "The training part is used whatever `part` says."),
    Mistake("the part that is held out whatever is asked", drawing(cut=lambda tokens, held_out, part: cut(tokens,
            held_out, "held out")),
        "The part that is held out is used whatever `part` says."),
    Mistake("nothing left where nothing is held out", drawing(cut=lambda tokens, held_out, part: tokens[-held_out:]
            if held(part) else tokens[:-held_out]),
        "With held_out = 0 nothing is left for training: tokens[:-0] is empty. Cut at len(tokens) − held_out."),
    Mistake("training on the whole text", windows(lambda part, n, held_out, context: held(part) * (n - held_out),
            lambda part, n, held_out, context: n - context),
        "Training windows come from the whole text, the part that is held out included. Cut first, then draw."),
    Mistake("testing on the whole text", windows(lambda part, n, held_out, context: 0,
            lambda part, n, held_out, context: n - context if held(part) else n - held_out - context),
        "Windows that are held out come from the whole text, the training part included. Cut first, then draw."),
    Mistake("a start anywhere in the part", drawing(count=lambda n, context: n),
        "Windows begin anywhere in the part, so that the last ones are too short. n tokens have n − context windows."),
    Mistake("one window too many", drawing(count=lambda n, context: n - context + 1),
        "There is one window too many, and its last target lies beyond the part. n tokens have n − context windows."),
    Mistake("always the first window", drawing(start=lambda u, count: 0),
        "Every row is the first window of the part. u says which: int(u · number of windows)."),
    Mistake("one token fewer in training", drawing(cut=lambda tokens, held_out, part: tokens[len(tokens) - held_out:]
            if held(part) else tokens[: len(tokens) - held_out - 1]),
        "The last token of the training part is lost."),
    Mistake("one token more held out", drawing(cut=lambda tokens, held_out, part: tokens[max(len(tokens) - held_out
            - 1, 0):] if held(part) else tokens[: len(tokens) - held_out]),
        "The last token of the training part is in the part that is held out, too."),
    Mistake("one token fewer held out", drawing(cut=lambda tokens, held_out, part: tokens[len(tokens) - held_out + 1:]
            if held(part) else tokens[: len(tokens) - held_out]),
        "The first token that is held out is lost."),
    Mistake("the last window never drawn", drawing(count=lambda n, context: max(n - context - 1, 1)),
        "The last window is never drawn. n tokens have n − context windows, at 0 to n − context − 1."),
    Mistake("the first window never drawn", drawing(start=lambda u, count: min(1 + int(u * (count - 1)), count - 1)),
        "The first window is never drawn. Windows begin at 0."),
    Mistake("rounded", drawing(start=lambda u, count: min(round(u * count), count - 1)),
        "u times the number of windows is rounded to the nearest. Round it down: int."),
    Mistake("rounded up", drawing(start=lambda u, count: min(int(np.ceil(u * count)), count - 1)),
        "u times the number of windows is rounded up. Round it down: int."),
    Mistake("rounded from one less", drawing(start=lambda u, count: round(u * (count - 1))),
        "u is multiplied by one less and rounded, so that the first and the last window come half as often. Multiply "
        "by the number of windows and round down."),
    Mistake("from the end", drawing(start=lambda u, count: count - 1 - int(u * count)),
        "The windows are counted from the end. u = 0 is the first."),
    Mistake("multiples of the context", lambda tokens, held_out, part, context, u: drawing(
            start=lambda u, count: int(u * count) // context * context)(tokens, held_out, part, context, u),
        "Windows begin only at multiples of the context. They begin anywhere."),
    Mistake("the same window in each row", lambda tokens, held_out, part, context, u: drawing()(
            tokens, held_out, part, context, np.full(len(u), u[0])),
        "All rows have the window of the first u. Each has its own."),
    Mistake("the rows in reverse", lambda tokens, held_out, part, context, u: drawing()(
            tokens, held_out, part, context, u[::-1]),
        "The rows are in reverse. Row b belongs to u[b]."),
    Mistake("the inputs as targets", drawing(ahead=0),
        "The targets are the inputs. Each target is the token that comes next."),
    Mistake("targets two places ahead", lambda tokens, held_out, part, context, u: (
            drawing()(tokens, held_out, part, context, u)[0],
            drawing()(np.append(tokens[1:], tokens[-1]), held_out, part, context, u)[1]),
        "The targets are two places ahead. Each is the token that comes next."),
    Mistake("the targets behind", drawing(given=lambda inputs, targets: (targets, inputs)),
        "The two results are exchanged, so that the targets come before the inputs."),
    Mistake("columns", drawing(given=lambda inputs, targets: (inputs.T, targets.T)),
        "The windows are the columns. They are the rows: (B, context)."),
    Mistake("the last target alone", drawing(given=lambda inputs, targets: (inputs, targets[:, -1])),
        "There is one target for each window. Each place of it has its own: the token that comes next."),
    Mistake("targets one token short", drawing(given=lambda inputs, targets: (inputs, targets[:, :-1])),
        "The targets end one place too early: a slice from start + 1 has to go to start + context + 1."),
    Mistake("too many windows", drawing(count=lambda n, context: n + context),
        "u is multiplied by too many windows. n tokens have n − context windows."),
    Mistake("one token more in a window", lambda tokens, held_out, part, context, u: drawing(
            count=lambda n, more: n - more + 1)(tokens, held_out, part, context + 1, u),
        "The inputs have one token more than context."),
)  # fmt: skip


# The first checks of the doctor ---------------------------------------------------------------------------------------


def first_loss(logits, tokens, ahead=1):
    """The mean loss of the tokens so many places ahead."""
    T = tokens.shape[1]
    rows, words = logits[:, : T - ahead].reshape(-1, logits.shape[2]), tokens[:, ahead:].reshape(-1)
    return losses_of(rows, words).mean()


def changed_at(tokens, vocabulary, rows, places):
    changed = tokens.copy()
    changed[rows, places] = (changed[rows, places] + 1) % vocabulary
    return changed


def differ(a, b, near=1e-5):
    return bool((np.abs(a - b) > near).any())


def no_leak(places=lambda T: range(1, T), compared=lambda logits, t: logits[:, :t], differ=differ):
    """Whether later tokens change no earlier logits. places(T): which tokens are changed, in all rows, one by one."""

    def check(model, tokens, vocabulary):
        logits = model(tokens)
        for t in places(tokens.shape[1]):
            after = model(changed_at(tokens, vocabulary, slice(None), t))
            if differ(compared(after, t), compared(logits, t)):
                return False
        return True

    return check


def rows_apart(rows=range, others=lambda logits, b: np.delete(logits, b, axis=0), places=slice(None), differ=differ):
    """Whether rows change no other rows. rows(B): which are changed, one by one; places: at which of their tokens."""

    def check(model, tokens, vocabulary):
        logits = model(tokens)
        for b in rows(len(tokens)):
            after = model(changed_at(tokens, vocabulary, b, places))
            if differ(others(after, b), others(logits, b)):
                return False
        return True

    return check


NO_LEAK, ROWS_APART = no_leak(), rows_apart()


def examining(loss=first_loss, near=lambda loss, words, logits: abs(loss - np.log(words)) < 0.1,
        causal=NO_LEAK, apart=ROWS_APART, given=lambda *three: three):  # fmt: skip
    """first_checks with one step exchanged for a wrong one; every step not named is right."""

    def first_checks(model, tokens, vocabulary):
        logits = model(tokens)
        is_near = bool(near(loss(logits, tokens), vocabulary, logits))
        return given(is_near, causal(model, tokens, vocabulary), apart(model, tokens, vocabulary))

    return first_checks


def on_the_batch_itself(model, tokens, vocabulary):
    """Tokens are changed in the batch and stay so."""
    logits = model(tokens)
    for t in range(1, tokens.shape[1]):
        tokens[:, t] = (tokens[:, t] + 1) % vocabulary
        if differ(model(tokens)[:, :t], logits[:, :t]):
            return False
    return True


def exactly(a, b):
    return bool((a != b).any())


CHECK_MISTAKES = (
    Mistake("the loss of the token itself", examining(loss=lambda logits, tokens: first_loss(logits, tokens, 0)),
        "The first loss compares the logits at place t with token t, which the model has seen. They are for token "
        "t + 1."),
    Mistake("only a loss that is too high", examining(near=lambda loss, words, logits: loss < np.log(words) + 0.1),
        "A first loss that is too low passes. Near means neither above nor below: abs."),
    Mistake("only a loss that is too low", examining(near=lambda loss, words, logits: loss > np.log(words) - 0.1),
        "A first loss that is too high passes. Near means neither above nor below: abs."),
    Mistake("the model's own number of tokens", examining(near=lambda loss, words, logits: abs(loss - np.log(
            logits.shape[-1])) < 0.1),
        "The first loss is compared with ln of the number of logits, so that a model with too many tokens looks "
        "healthy. Compare it with ln of the vocabulary that is given."),  # simonw/public-notes 11
    Mistake("no loss is near", examining(near=lambda loss, words, logits: abs(loss - np.log2(words)) < 0.1),
        "No first loss counts as near. Is it a mean, in nats, and compared with the natural logarithm of the "
        "vocabulary?"),
    Mistake("near means within 1", examining(near=lambda loss, words, logits: abs(loss - np.log(words)) < 1.5),
        "Far too much counts as near. The statement says 0.1."),
    Mistake("the first loss upside down", examining(given=lambda loss, causal, apart: (not loss, causal, apart)),
        "The first result is upside down: True means that the loss is as it should be."),
    Mistake("only the last token changed", examining(causal=no_leak(places=lambda T: [T - 1])),
        "Only the last token is changed, so a leak between earlier places is not found. Change each one but the "
        "first."),
    Mistake("only the last token changed, and one place compared", examining(causal=no_leak(places=lambda T: [T - 1],
            compared=lambda logits, t: logits[:, t - 1 : t])),
        "Only the last token is changed, and only the logits right before it are compared."),
    Mistake("only the place before compared", examining(causal=no_leak(compared=lambda logits, t: logits[
            :, t - 1 : t])),
        "Only the logits right before the changed token are compared. Compare those of all earlier places."),
    Mistake("only the first place compared", examining(causal=no_leak(compared=lambda logits, t: logits[:, :1])),
        "Only the logits at the first place are compared. Compare those of all earlier places."),
    Mistake("only the second token changed", examining(causal=no_leak(places=lambda T: [1])),
        "Only the second token is changed. Change each one but the first."),
    Mistake("the last token never changed", examining(causal=no_leak(places=lambda T: range(1, T - 1))),
        "The last token is never changed. Places are 1 to T − 1: range(1, T)."),
    Mistake("the first place not compared", examining(causal=no_leak(compared=lambda logits, t: logits[:, 1:t])),
        "The logits at the first place are not compared: [:, :t]."),
    Mistake("only the first row looked at for leaks", examining(causal=no_leak(compared=lambda logits, t: logits[
            :1, :t])),
        "For leaks only the first row is looked at. Look at all rows."),
    Mistake("only the last row looked at for leaks", examining(causal=no_leak(compared=lambda logits, t: logits[
            -1:, :t])),
        "For leaks only the last row is looked at. Look at all rows."),
    Mistake("later logits compared", examining(causal=no_leak(compared=lambda logits, t: logits[:, t:])),
        "Logits at the changed place and after it are compared, and these have to change. Compare the earlier ones: "
        "[:, :t]."),
    Mistake("no leak is ever found", examining(causal=lambda *_: True),
        "A leak is never found. Is the changed batch another array than the first one?"),
    Mistake("leaks upside down", examining(given=lambda loss, causal, apart: (loss, not causal, apart)),
        "The second result is upside down: True means that no later token changes earlier logits."),
    Mistake("only the first row changed", examining(apart=rows_apart(rows=lambda B: [0])),
        "Only the first row is changed. Change each in turn."),
    Mistake("only the last row changed", examining(apart=rows_apart(rows=lambda B: [B - 1])),
        "Only the last row is changed. Change each in turn."),
    Mistake("the last row never changed", examining(apart=rows_apart(rows=lambda B: range(B - 1))),
        "The last row is never changed. Rows are 0 to B − 1."),
    Mistake("the first row never changed", examining(apart=rows_apart(rows=lambda B: range(1, B))),
        "The first row is never changed. Rows are 0 to B − 1."),
    Mistake("the changed row compared too", examining(apart=rows_apart(others=lambda logits, b: logits)),
        "The changed row is compared, too, and has to change. Compare all others."),
    Mistake("only the last token of a row changed", examining(apart=rows_apart(places=-1)),
        "Of a row only the last token is changed. Rows may mix at other places."),
    Mistake("only the first token of a row changed", examining(apart=rows_apart(places=0)),
        "Of a row only the first token is changed. Rows may mix at other places."),
    Mistake("rows that mix are never found", examining(apart=lambda *_: True),
        "Rows that mix are never found. Is the changed batch another array than the first one?"),
    Mistake("rows upside down", examining(given=lambda loss, causal, apart: (loss, causal, not apart)),
        "The third result is upside down: True means that no row changes another one."),
    Mistake("rounding as a leak", examining(causal=no_leak(differ=exactly), apart=rows_apart(differ=exactly)),
        "Rounding is taken for a leak. Differences up to 1e-6 count as none."),
    Mistake("leaks taken for rounding", examining(causal=no_leak(differ=lambda a, b: differ(a, b, 0.1)),
            apart=rows_apart(differ=lambda a, b: differ(a, b, 0.1))),
        "Leaks are taken for rounding. A difference above 1e-3 is a leak."),
    Mistake("the batch changed and left so", examining(causal=on_the_batch_itself),
        "Tokens are changed in the batch itself and stay so. Change a copy: tokens.copy()."),
    Mistake("causal and apart exchanged", examining(given=lambda loss, causal, apart: (loss, apart, causal)),
        "The second and the third result are exchanged."),
    Mistake("the first two exchanged", examining(given=lambda loss, causal, apart: (causal, loss, apart)),
        "The first and the second result are exchanged."),
    Mistake("all upside down", examining(given=lambda *three: tuple(not each for each in three)),
        "All three are upside down: True means healthy."),
)  # fmt: skip


# Assembled and trained ------------------------------------------------------------------------------------------------


def rotated(x):
    """x (…, T, d) with pairs of neighbours rotated by their positions. Source: Su et al. 2021, section 3.4.2."""
    T, d = x.shape[-2:]
    speeds = 10000.0 ** (-torch.arange(0, d, 2, dtype=x.dtype) / d)
    angles = torch.outer(torch.arange(T, dtype=x.dtype), speeds)
    a, b = x[..., 0::2], x[..., 1::2]
    pairs = (a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos())
    return torch.stack(pairs, dim=-1).flatten(-2)


def rms_norm(x, weight, eps=1e-5):
    return x / (x.pow(2).mean(dim=-1, keepdim=True) + eps).sqrt() * weight


def by_head(x, heads):
    B, T, d = x.shape
    return x.reshape(B, T, heads, d // heads).transpose(1, 2)


def whole_again(x):
    B, h, T, d = x.shape
    return x.transpose(1, 2).reshape(B, T, h * d)


def softmax_of_causal(scores):
    later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return scores.masked_fill(later, -math.inf).softmax(dim=-1)


class Assembled:
    """A model and its training, in which any step can be exchanged for a wrong one; every other step is right.

    rate_at(step, count, warm_up): the share of the rate in step number 1, 2, …, of so many.
    """

    norm = staticmethod(rms_norm)
    split = staticmethod(by_head)
    join = staticmethod(whole_again)
    rotate = staticmethod(rotated)
    rotate_values = staticmethod(lambda v: v)
    scale = staticmethod(lambda d_head, d: math.sqrt(d_head))
    attend = staticmethod(softmax_of_causal)
    out = staticmethod(lambda y, w: y @ w)
    gated = staticmethod(lambda gate, up: torch.nn.functional.silu(gate) * up)
    add = staticmethod(lambda x, found: x + found)
    add_network = staticmethod(lambda x, found: x + found)
    before_network = staticmethod(lambda x, start: x)
    last_norm = staticmethod(lambda x, normed: normed)
    layers = (0, 1)
    unembedding = staticmethod(lambda weights: weights["embedding"].T)
    before = staticmethod(lambda x, normed: normed)
    loss = staticmethod(
        lambda logits, targets: torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
    )
    rate_at = staticmethod(
        lambda step, count, warm_up: (
            step / warm_up
            if step <= warm_up
            else 0.55 + 0.45 * math.cos(math.pi * (step - warm_up) / (count - warm_up))
        )
    )
    clip = staticmethod(lambda weights: torch.nn.utils.clip_grad_norm_(weights, 1.0))
    decays = (0.0, 0.0, 0.1)  # of weights with so many axes
    optimizer = "AdamW"
    betas = (0.9, 0.99)
    zero = True
    anew = False
    after = False
    trained = staticmethod(lambda name: True)

    def __init__(self, **wrong):
        vars(self).update(wrong)

    def block(self, x, w, heads):
        y = self.before(x, self.norm(x, w["norm_1"]))
        q, k, v = (self.split(y @ w[name], heads) for name in "qkv")
        scores = self.rotate(q) @ self.rotate(k).mT / self.scale(q.shape[-1], x.shape[-1])
        found = self.out(self.join(self.attend(scores) @ self.rotate_values(v)), w["o"])
        start, x = x, self.add(x, found)
        x = self.before_network(x, start)
        y = self.before(x, self.norm(x, w["norm_2"]))
        return self.add_network(x, self.gated(y @ w["gate"], y @ w["up"]) @ w["down"])

    def logits_of(self, weights, tokens, heads):
        x = weights["embedding"][tokens]
        for layer in self.layers:
            own = {name[2:]: weight for name, weight in weights.items() if name.startswith(f"{layer}.")}
            x = self.block(x, own, heads)
        return self.last_norm(x, self.norm(x, weights["norm"])) @ self.unembedding(weights)

    def train(self, weights, batches, heads, rate, warm_up):
        own = {name: weight.clone().requires_grad_(self.trained(name)) for name, weight in weights.items()}
        leaves = [weight for weight in own.values() if weight.requires_grad]
        losses, optimizer = [], None
        for step, (inputs, targets) in enumerate(batches, 1):
            if optimizer is None or self.anew:
                groups = [
                    {"params": [each for each in leaves if each.ndim == axes], "weight_decay": self.decays[axes]}
                    for axes in (1, 2)
                ]
                optimizer = getattr(torch.optim, self.optimizer)(groups, lr=rate, betas=self.betas)
            for group in optimizer.param_groups:
                group["lr"] = rate * self.rate_at(step, len(batches), warm_up)
            loss = self.loss(self.logits_of(own, inputs, heads), targets)
            if self.zero:
                optimizer.zero_grad()
            loss.backward()
            self.clip(leaves)
            optimizer.step()
            if self.after:
                loss = self.loss(self.logits_of(own, inputs, heads), targets)
            losses.append(loss.item())
        return losses


def assembled(name, message, **wrong):
    return Mistake(name, functions_of(Assembled(**wrong)), message)


def functions_of(made):
    return {"logits_of": made.logits_of, "train": made.train}


def layer_norm(x, weight, eps=1e-5):
    return rms_norm(x - x.mean(dim=-1, keepdim=True), weight, eps)


def split_wrongly(x, heads):
    B, T, d = x.shape
    return x.reshape(B, heads, T, d // heads)


def split_in_turns(x, heads):
    B, T, d = x.shape
    return x.reshape(B, T, d // heads, heads).permute(0, 3, 1, 2)


def halves_rotated(x):
    half = x.shape[-1] // 2
    mixed = torch.stack([x[..., :half], x[..., half:]], dim=-1).flatten(-2)
    turned = rotated(mixed)
    return torch.cat([turned[..., 0::2], turned[..., 1::2]], dim=-1)


def clipped_one_by_one(weights):
    for weight in weights:
        torch.nn.utils.clip_grad_norm_([weight], 1.0)


def always_to_norm_1(weights):
    norm = math.sqrt(sum(float(weight.grad.pow(2).sum()) for weight in weights))
    for weight in weights:
        weight.grad /= norm


ASSEMBLE_MISTAKES = (
    assembled("no mask", "Later tokens are not blocked. Put −∞ in their place before the softmax.",
        attend=lambda scores: scores.softmax(dim=-1)),
    assembled("the mask after the softmax", "Weights of later tokens are set to 0 after the softmax, so that a row no "
        "longer sums to 1. Block scores before it.", attend=lambda scores: scores.softmax(dim=-1).tril()),
    assembled("the own token is blocked", "A token does not see itself. Later tokens alone are blocked: triu(1).",
        attend=lambda scores: scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(0), -1e9).softmax(
            dim=-1)),
    assembled("softmax over the queries", "The softmax runs over the queries. It runs over the keys, the last axis.",
        attend=lambda scores: scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -math.inf)
        .softmax(dim=-2)),
    assembled("no scale", "The scores are not divided by √d_head.", scale=lambda d_head, d: 1.0),
    assembled("scaled by the whole width", "The scores are divided by √d. Each head has d / heads numbers: √d_head.",
        scale=lambda d_head, d: math.sqrt(d)),
    assembled("nothing rotated", "Queries and keys are not rotated, so the model knows no positions.",
        rotate=lambda x: x),
    assembled("halves rotated", "Numbers p and p + d/2 are rotated together. `rotated` takes neighbours.",
        rotate=halves_rotated),
    assembled("rotated before the heads are split", "Queries and keys are rotated before they are split into heads, so "
        "that heads have different speeds. Split first.",
        split=lambda x, heads: by_head(x, heads), rotate=lambda x: by_head(rotated(whole_again(x)), x.shape[1])),
    assembled("values rotated", "The values are rotated too. Positions belong into the scores alone.",
        rotate_values=rotated),
    assembled("split by a reshape alone",
        "The heads are split by a reshape to (B, heads, T, d_head), which mixes tokens "
        "and numbers. Reshape to (B, T, heads, d_head), then swap two axes.", split=split_wrongly),
    assembled("heads in turns", "Numbers are dealt out to the heads in turn. Each head has d / heads numbers side by "
        "side.", split=split_in_turns),
    assembled("joined without the axes swapped back", "The heads are joined without swapping their axes back, which "
        "mixes tokens and heads.", join=lambda x: x.reshape(x.shape[0], x.shape[2], -1)),
    assembled("no map after the heads",
        "What the heads found is not multiplied by o.", out=lambda y, w: y + 0 * w.sum()),
    assembled("o transposed", "o is transposed: the joined heads are multiplied by o from the right.",
        out=lambda y, w: y @ w.T),
    assembled("no residual around attention", "x is replaced by what attention found. Add it to x.",
        add=lambda x, found: found),
    assembled("no residual around the network", "x is replaced by what the feed-forward network found. Add it to x.",
        add_network=lambda x, found: found),
    assembled("both parts read the same x",
        "The feed-forward network and attention both start from the x of the block's "
        "beginning, and what attention found is lost.", before_network=lambda x, start: start),
    assembled("no norm before the parts", "The parts read x itself. They read its norm.",
        before=lambda x, normed: x + 0 * normed),
    assembled("the residual from the norm",
        "The parts add to the normalised x. They read the norm, and add to x itself.",
        add=lambda x, found: x / (x.pow(2).mean(dim=-1, keepdim=True) + 1e-5).sqrt() + found),
    assembled("no norm at the end", "The last norm is left out: the logits come from norm of x.",
        last_norm=lambda x, normed: x + 0 * normed),
    assembled("norms without weights", "The norms do not multiply by their weights.",
        norm=lambda x, weight: rms_norm(x, 1 + 0 * weight)),
    assembled("layer norm", "The norms subtract the mean. An RMS norm does not.", norm=layer_norm),
    assembled("no eps", "eps is missing in the norms: 1e-5 is added to the mean of the squares.",
        norm=lambda x, weight: rms_norm(x, weight, 0.0)),
    assembled("eps outside the root", "eps is added to the root. It is added to the mean of the squares, inside.",
        norm=lambda x, weight: x / (x.pow(2).mean(dim=-1, keepdim=True).sqrt() + 1e-5) * weight),
    assembled("no SiLU",
        "The gate is multiplied as it is. It goes through SiLU first.", gated=lambda gate, up: gate * up),
    assembled("SiLU of the wrong map", "SiLU is taken of up. It is taken of the gate.",
        gated=lambda gate, up: gate * torch.nn.functional.silu(up)),
    assembled("sigmoid for SiLU", "The gate goes through a sigmoid. SiLU is x · sigmoid(x).",
        gated=lambda gate, up: gate.sigmoid() * up),
    assembled("GELU for SiLU", "The gate goes through GELU. Here it is SiLU.",
        gated=lambda gate, up: torch.nn.functional.gelu(gate) * up),
    assembled("ReLU for SiLU", "The gate goes through ReLU. Here it is SiLU.", gated=lambda gate, up: gate.relu() * up),
    assembled("up left out", "up is left out: SiLU(y gate) is multiplied by y up.",
        gated=lambda gate, up: torch.nn.functional.silu(gate) + 0 * up),
    assembled("layer 0 twice", "Both blocks have the weights of layer 0.", layers=(0, 0)),
    assembled("one layer", "There is one block only. There are two.", layers=(0,)),
    assembled("gradients added up", "The gradients of all steps are added up. Set them to zero before each backward "
        "pass.", zero=False),
    assembled("the rate never changes", "The rate is the same in all steps. Set it before each: "
        "group[\"lr\"] for each group of optimiser.param_groups.", rate_at=lambda step, count, warm_up: 1.0),
    assembled("no warm-up", "There is no warm-up: the first steps have the whole rate.",
        rate_at=lambda step, count, warm_up: 1.0 if step <= warm_up else Assembled.rate_at(step, count, warm_up)),
    assembled("a warm-up from 0",
        "The warm-up counts steps from 0, so that the first does nothing. Steps count from 1.",
        rate_at=lambda step, count, warm_up: (step - 1) / warm_up if step <= warm_up else Assembled.rate_at(
            step, count, warm_up)),
    assembled("each rate one step late",
        "Each step has the rate of the step before it. Set the rate before the step, and "
        "count steps from 1.",
        rate_at=lambda step, count, warm_up: Assembled.rate_at(max(step - 1, 0), count, warm_up)),
    assembled("no cosine", "After the warm-up the rate stays as it is. It falls along half a cosine.",
        rate_at=lambda step, count, warm_up: min(step / warm_up, 1.0)),
    assembled("down to 0", "The rate falls to 0. It falls to a tenth.",
        rate_at=lambda step, count, warm_up: step / warm_up if step <= warm_up else 0.5 + 0.5 * math.cos(
            math.pi * (step - warm_up) / (count - warm_up))),
    assembled("a straight line", "The rate falls along a straight line. It falls along half a cosine.",
        rate_at=lambda step, count, warm_up: step / warm_up if step <= warm_up else 1 - 0.9 * (step - warm_up) / (
            count - warm_up)),
    assembled("the cosine over all steps", "The cosine runs over all steps. It begins where the warm-up ends.",
        rate_at=lambda step, count, warm_up: step / warm_up if step <= warm_up else 0.55 + 0.45 * math.cos(
            math.pi * step / count)),
    assembled("no clipping", "The gradients are not clipped.", clip=lambda weights: None),
    assembled("each gradient clipped by itself", "Each weight's gradient is clipped by itself. The norm is that of all "
        "together, and all have one factor.", clip=clipped_one_by_one),
    assembled("numbers clipped", "Single numbers of the gradients are clipped. The norm of all is, by one factor.",
        clip=lambda weights: torch.nn.utils.clip_grad_value_(weights, 1.0)),
    assembled("always scaled to 1", "Gradients are scaled to the norm 1 where they are smaller, too. Only larger ones "
        "are.", clip=always_to_norm_1),
    assembled("no decay", "No weight decays. Those with two axes decay by 0.1.", decays=(0.0, 0.0, 0.0)),
    assembled("all weights decay", "The norms decay, too. Only weights with two axes do.", decays=(0.0, 0.1, 0.1)),
    assembled("another decay", "The decay is 0.01, which is PyTorch's own. Here it is 0.1.",
        decays=(0.0, 0.0, 0.01)),
    assembled("PyTorch's own decay for all",
        "The decay is 0.01 for all weights, which is PyTorch's own. Here it is 0.1 "
        "for those with two axes, and 0 for norms.", decays=(0.0, 0.01, 0.01)),
    assembled("Adam with decay in the gradient", "The optimiser is Adam, whose decay is added to the gradient. AdamW "
        "subtracts it from the weight.", optimizer="Adam"),
    assembled("PyTorch's own betas", "β₂ is 0.999, which is PyTorch's own. Here the betas are 0.9 and 0.99.",
        betas=(0.9, 0.999)),
    assembled("a new optimiser for each step", "Each step makes a new optimiser, which forgets its averages. Make it "
        "once.", anew=True),
    assembled("the loss after the step", "Each loss is that after the step. Return the one before it.", after=True),
    assembled("the sum of losses", "The losses of all tokens are added up. Take their mean.",
        loss=lambda logits, targets: torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), targets.flatten(), reduction="sum")),
    assembled("targets moved once more", "The targets are moved by one place. They are moved already.",
        loss=lambda logits, targets: torch.nn.functional.cross_entropy(
            logits[:, :-1].flatten(0, 1), targets[:, 1:].flatten())),
    assembled("softmax before the cross-entropy",
        "A softmax is taken before the cross-entropy, which takes one itself. "
        "Give it the logits.", loss=lambda logits, targets: torch.nn.functional.cross_entropy(
            logits.softmax(dim=-1).flatten(0, 1), targets.flatten())),
    assembled("only the last token", "Only the loss of the last token of each row is taken. Take the mean over all.",
        loss=lambda logits, targets: torch.nn.functional.cross_entropy(logits[:, -1], targets[:, -1])),
    assembled("norms not trained", "The norms are not trained. All weights are.",
        trained=lambda name: "norm" not in name),
    assembled("the embedding not trained", "The embedding is not trained. All weights are.",
        trained=lambda name: name != "embedding"),
    assembled("layer 0 frozen", "The weights of layer 0 are not trained. All weights are.",
        trained=lambda name: not name.startswith("0.")),
    assembled("the embedding trained on one side", "The gradient of the logits does not reach the embedding: is it "
        "detached or cloned there? It is one weight in two places.",
        unembedding=lambda weights: weights["embedding"].detach().T),
)  # fmt: skip


# A training step that is ill ------------------------------------------------------------------------------------------


def added_up(shape, inputs, back):
    gradient = np.zeros(shape)
    np.add.at(gradient, inputs, back)
    return gradient


def last_of_each(shape, inputs, back):
    gradient = np.zeros(shape)
    gradient[inputs] += back
    return gradient


def first_of_each(shape, inputs, back):
    return last_of_each(shape, inputs[::-1], back[::-1])


def averaged(shape, inputs, back):
    counts = np.bincount(inputs, minlength=shape[0])[:, None]
    return added_up(shape, inputs, back) / np.maximum(counts, 1)


def counted_again(shape, inputs, back):
    return added_up(shape, inputs, back) * np.bincount(inputs, minlength=shape[0])[:, None]


def stepping(embedded=added_up, mean=lambda n: n, to_E=lambda wrong, U, new_U: wrong @ U.T,
        to_U=lambda x, wrong: x.T @ wrong, new=lambda E, gradient, rate: E - rate * gradient,
        new_U=lambda U, gradient, rate: U - rate * gradient, loss=lambda losses: losses.mean(),
        wrong=lambda shares, hot: shares - hot):  # fmt: skip
    """ill_step with one step exchanged for a wrong one; every step not named is right."""

    def ill_step(E, U, inputs, targets, rate):
        x = E[inputs]
        logits = x @ U
        exps = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares, hot = exps / exps.sum(axis=1, keepdims=True), np.eye(U.shape[1])[targets]
        losses = log_sum_exp(logits) - (logits * hot).sum(axis=1)
        off = wrong(shares, hot) / mean(len(inputs))
        later_U = new_U(U, to_U(x, off), rate)
        return loss(losses), new(E, embedded(E.shape, inputs, to_E(off, U, later_U)), rate), later_U

    return ill_step


def with_the_last_error_of_each(E, U, inputs, targets, rate):
    """Repeated tokens are dropped from the whole step."""
    _, places = np.unique(inputs[::-1], return_index=True)
    kept = np.sort(len(inputs) - 1 - places)
    return stepping()(E, U, inputs[kept], targets[kept], rate)


ILLNESS_MISTAKES = (
    Mistake("only the last place of each token", stepping(embedded=last_of_each),
        "Right for a text in which no token comes twice. With two places that read one row of E, what does the row get "
        "from the first of them, and what from the second?"),
    Mistake("only the first place of each token", stepping(embedded=first_of_each),
        "A row of E gets the gradient of the first place that reads it. It gets the sum over all of them."),
    Mistake("the mean over the places of a token", stepping(embedded=averaged),
        "A row of E gets the mean over the places that read it. It gets their sum: they are divided by the number of "
        "all tokens already."),
    Mistake("counted twice", stepping(embedded=counted_again),
        "The places of a token that comes n times count n times each. Add each place once."),
    Mistake("repeated tokens dropped", with_the_last_error_of_each,
        "Repeated tokens are left out of the whole step, of the loss too. Only the gradient of E was wrong."),
    Mistake("E is not trained", stepping(embedded=lambda shape, inputs, back: np.zeros(shape)),
        "E stays as it is. Its rows move, too."),
    Mistake("U is not trained", stepping(new_U=lambda U, gradient, rate: U),
        "U stays as it is. It was right: leave it."),
    Mistake("E after U", stepping(to_E=lambda wrong, U, new_U: wrong @ new_U.T),
        "The gradient of E is computed with the new U. Both gradients belong to the old weights."),
    Mistake("not divided by the number of tokens", stepping(mean=lambda n: 1.0),
        "The gradients are those of the sum of losses. The mean was right: leave it."),
    Mistake("up the slope", stepping(new=lambda E, gradient, rate: E + rate * gradient),
        "E moves up the slope, so that the loss grows."),
    Mistake("both up the slope", stepping(wrong=lambda shares, hot: hot - shares),
        "Both matrices move up the slope, so that the loss grows."),
    Mistake("the target left out", stepping(wrong=lambda shares, hot: shares),
        "The target is not subtracted. It was right: probabilities minus 1 at the target."),
    Mistake("the sum of losses", stepping(loss=lambda losses: losses.sum()),
        "The loss is a sum. The mean was right: leave it."),
    Mistake("the rate left out", stepping(new=lambda E, gradient, rate: E - gradient),
        "E moves by the whole gradient. Multiply it by the rate."),
    Mistake("E over all places",
        stepping(embedded=lambda shape, inputs, back: np.broadcast_to(back.sum(axis=0), shape)),
        "Each row of E gets the gradient of all places. It gets that of the places that read it."),
    Mistake("the gradient in place of the matrix", stepping(new=lambda E, gradient, rate: gradient),
        "The gradient of E is returned in place of the new E."),
)  # fmt: skip


EXERCISES = {
    "merge_step": Exercise(2, {"merge_step": merging()}, MERGE_MISTAKES),
    "encode_decode": Exercise(3, {"encode": encoding(), "decode": decoding()}, TOKEN_MISTAKES),
    "padded_loss": Exercise(2, {"padded_loss": over_real()}, LOSS_MISTAKES),
    "top_p": Exercise(2, {"top_p": sampling()}, TOP_P_MISTAKES),
    "batch_without_leak": Exercise(2, {"batch": drawing()}, BATCH_MISTAKES),
    "first_checks": Exercise(3, {"first_checks": examining()}, CHECK_MISTAKES),
    "assemble": Exercise(6, functions_of(Assembled()), ASSEMBLE_MISTAKES),
    "find_the_illness": Exercise(2, {"ill_step": stepping()}, ILLNESS_MISTAKES),
}
