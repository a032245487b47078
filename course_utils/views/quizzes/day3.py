"""The questions of day 3."""

DAY_3 = [
    {
        "question": "Random tokens of 8 kinds, targets one place on, a loss far below `log 8` on new texts. What does "
        "it prove?",
        "choices": [
            {
                "text": "that the model is large enough for these texts",
                "right": False,
                "why": "No size helps: the past says nothing about the next token. The answer was visible somewhere.",
            },
            {
                "text": "that it was trained long enough to know the texts",
                "right": False,
                "why": "On new random texts nothing helps that was learnt by heart.",
            },
            {
                "text": "that an output sees a later token",
                "right": True,
                "why": "No honest guess has a lower mean loss than `log 8` there, so the answers were seen.",
            },
        ],
    },
    {
        "question": "Masked after the softmax, not renormalised: blocked weights are exactly 0. Is that safe?",
        "choices": [
            {
                "text": "yes: a key with weight 0 cannot reach the output",
                "right": False,
                "why": "Its value cannot. Its score can: it is in the sum by which all other weights were divided.",
            },
            {
                "text": "no: the weights that are left depend on the blocked scores",
                "right": True,
                "why": "The denominator runs over all keys, so the size of the output tells about later tokens.",
            },
            {
                "text": "no, and dividing each row by its sum would not help either",
                "right": False,
                "why": "It cancels the denominator, and the leak with it, unless a large blocked score leaves 0/0.",
            },
        ],
    },
    {
        "question": "A query may attend to nothing, and −1e4 was added to all its scores, of a few units each, in "
        "float32. What does it do?",
        "choices": [
            {
                "text": "its weights are NaN",
                "right": False,
                "why": "That is what −∞ gives in `torch.softmax`. Here all scores are finite.",
            },
            {
                "text": "its weights are 0",
                "right": False,
                "why": "Softmax makes every row sum to 1. Zeros take a softmax that knows of empty rows.",
            },
            {
                "text": "its weights are all equal: one over the number of keys",
                "right": False,
                "why": "That is −1e9 in float32, or −1e4 in float16: there small scores are lost in rounding.",
            },
            {
                "text": "it attends as though there were no mask",
                "right": True,
                "why": "The same number was added to every score of the row, and softmax does not notice that.",
            },
        ],
    },
    {
        "question": "Scores plus −∞ gave NaN in an empty row, and `nan_to_num` put zeros there. What is still wrong?",
        "choices": [
            {
                "text": "the gradients are NaN",
                "right": True,
                "why": "0 · NaN is NaN, and it spreads to the keys, which all rows share.",
            },
            {
                "text": "nothing: the values are zeros",
                "right": False,
                "why": "The values are. On the way back the gradient 0 is multiplied by weights that are NaN.",
            },
            {
                "text": "the other rows no longer sum to 1",
                "right": False,
                "why": "Rows of a softmax do not touch each other.",
            },
        ],
    },
    {
        "question": "A layer passes both leak tests. What do you know?",
        "choices": [
            {
                "text": "its mask is the causal one, from corner to corner",
                "right": False,
                "why": "A mask without its diagonal passes as well.",
            },
            {
                "text": "it can be trained on any text without a leak",
                "right": False,
                "why": "Not so: `0 * x` passes both, and learns nothing.",
            },
            {
                "text": "no output was seen to look ahead",
                "right": True,
                "why": "That and no more. Whether the past is let in is another question.",
            },
        ],
    },
    {
        "question": "4 texts of at most 7 tokens, 2 heads. Which shape does the padding mask have, to go with (7, 7)?",
        "choices": [
            {
                "text": "(4, 7)",
                "right": False,
                "why": "Its 4 is held against the 7 queries: an error here, silently wrong when the two are equal.",
            },
            {
                "text": "(4, 1, 7, 1)",
                "right": False,
                "why": "That blocks rows. Padding must not be looked at, so it is the keys that are blocked.",
            },
            {
                "text": "(4, 1, 1, 7)",
                "right": True,
                "why": "One row of keys for each text, the same for all heads and all queries.",
            },
            {
                "text": "(2, 1, 1, 7)",
                "right": False,
                "why": "The first axis counts texts, and there are 4. Heads come second, and share the padding.",
            },
        ],
    },
    {
        "question": "A row holds two texts: `text` is `[0, 0, 0, 1, 1]`. With `causal`, which mask keeps them apart?",
        "choices": [
            {
                "text": "`(text <= text[:, None]) & causal`",
                "right": False,
                "why": "The numbers rise along the row, so this is `causal` itself: text 1 reads text 0.",
            },
            {
                "text": "`(text[:, None] == text) & causal`",
                "right": True,
                "why": "The same text, and not later: a triangle for each text, along the diagonal.",
            },
            {
                "text": "`causal`: what is read is the past",
                "right": False,
                "why": "The past of another text. No leak test for later tokens complains of that.",
            },
            {
                "text": "`text[:, None] == text`: each a block",
                "right": False,
                "why": "The texts are apart, but within a text each token sees the later ones.",
            },
        ],
    },
    {
        "question": "`mask` works in `F.scaled_dot_product_attention`. What does `nn.MultiheadAttention` need?",
        "choices": [
            {
                "text": "`mask`",
                "right": False,
                "why": "There `True` means ignore: each query would see only the future.",
            },
            {
                "text": "`mask.T`",
                "right": False,
                "why": "Rows are queries in both. The transpose of a triangle also leaves the diagonal as it was.",
            },
            {
                "text": "`is_causal=True` and no mask",
                "right": False,
                "why": "It treats `is_causal` as a hint and wants the mask with it; for other masks there is no hint.",
            },
            {
                "text": "`~mask`",
                "right": True,
                "why": "One says `True` to take part, the other `True` to ignore.",
            },
        ],
    },
    {
        "question": "The keys of 9 tokens are kept, and 1 new token is added: n = 1, m = 10. How many may it see?",
        "choices": [
            {
                "text": "1: row 0 of a triangle",
                "right": False,
                "why": "That is the upper left corner, as `is_causal=True` has it. The new token stands at place 9.",
            },
            {
                "text": "9: all before it",
                "right": False,
                "why": "And itself: the token is known when the next one is guessed.",
            },
            {
                "text": "all 10",
                "right": True,
                "why": "It is the last of 10 tokens, so nothing is later. One new token needs no mask.",
            },
        ],
    },
]
