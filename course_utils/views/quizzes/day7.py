"""The questions of day 7."""


def _question(question, *choices):
    told = [{"text": text, "right": right, "why": why} for text, right, why in choices]
    return {"question": question, "choices": told}


DAY_7 = [
    _question(
        "Three requests of 2, 5 and 3 tokens, two slots, prompts done in a step. How many steps with refilled slots?",
        ("8", False, "That is static batching: the third request waits until the second is done, 5 + 3."),
        ("10", False, "That is one request after another."),
        ("5", True, "The third takes the slot of the first after step 2, and both end with step 5."),
    ),
    _question(
        "A text of 17 tokens in blocks of 16. How many places stay empty?",
        ("15", True, "Two blocks have 32 places, and only the last block has empty ones."),
        ("none, since blocks are taken on demand", False, "On demand, but whole: the 17th token needs a second block."),
        ("as many as the longest text could still need", False, "That is a store reserved ahead, without blocks."),
    ),
    _question(
        "A prompt lies in the cache from its first to its last token. What must still be computed?",
        ("at least its last token", True, "One query has to run, for the logits; and only whole blocks are shared."),
        ("nothing, as all keys and values are there", False, "The next token comes from logits, which no cache keeps."),
        ("all of its tokens, as sharing needs a rest", False, "Those before the last can be shared, in whole blocks."),
    ),
    _question(
        "A step has a budget of 64 tokens, and 10 requests decode. What can a prompt get?",
        ("64 tokens", False, "The decodes of the same step count."),
        ("54 tokens", True, "Decodes go first, one token each."),
        ("nothing until one of the ten requests is done", False, "54 tokens of the budget would stay unused."),
    ),
    _question(
        "The p95 of the gap is 17 ms, the largest gap 417 ms. What do you know?",
        ("one of the two is measured wrongly", False, "Both can be right: 95 of 100 gaps are below the p95, not all."),
        (
            "the server is fast for nearly everybody",
            False,
            "Who waits for 100 gaps meets some five of the longer ones.",
        ),
        ("one gap in twenty is longer than 17 ms", True, "How much longer these are, a percentile does not say."),
    ),
    _question(
        "p = (0.6, 0.4), q = (0.9, 0.1). How often is a draft kept?",
        ("0.6", False, "Σ min(p, q) has a second term, min(0.4, 0.1)."),
        ("two in three, which is 0.6 / 0.9", False, "So the first token is kept; the second always is."),
        ("0.7", True, "min(0.6, 0.9) + min(0.4, 0.1)."),
    ),
    _question(
        "The same p and q. A draft was refused. What comes out?",
        ("the second token", True, "(p − q)₊ = (0, 0.3): all of the remainder is there."),
        ("a draw from p", False, "The first token would come out too often: kept drafts gave it 0.6 already."),
        ("another draft, judged in the same way", False, "That gives min(p, q), scaled up, and not p."),
    ),
    _question(
        "Two engines, one with speculation. Sampled texts differ. What follows?",
        ("the one with speculation has a mistake in its rule", False, "The law is the same, not the text drawn."),
        ("nothing yet: compare how often tokens occur", True, "The rule keeps the law; coins are used otherwise."),
        ("the drafter is weak", False, "A weak drafter costs time and leaves the law as it is."),
    ),
    _question(
        "256 requests decode on a busy machine. What does verifying more drafts do?",
        ("it can lose", True, "Each token then takes time of its own, and refused ones are wasted."),
        ("it always gains, as the weights are read once", False, "Reading weights is the smaller part now."),
        ("it changes nothing, as one pass is one pass", False, "A pass of more tokens computes more."),
    ),
    _question(
        "Keys lie on two machines. What do the machines exchange at each step?",
        ("their keys and values", False, "These stay where they are: that is what the split is for."),
        ("the scores of all keys, so that one softmax can be taken", False, "Sums of exponentials are enough."),
        ("outputs and their log-sum-exp", True, "Day 6's merge needs no more, however long the text is."),
    ),
]
