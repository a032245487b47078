"""The questions of day 4."""

DAY_4 = [
    {
        "question": "`d_model` = 512, 8 heads, 2048 tokens. Which rank can the scores `QKᵀ` of one head have at most?",
        "choices": [
            {
                "text": "8",
                "right": False,
                "why": "That is how many heads there are. One head has 512 / 8 numbers for each token.",
            },
            {
                "text": "64",
                "right": True,
                "why": "It is a product of a 2048×64 and a 64×2048 matrix, so all rows are mixtures of 64.",
            },
            {
                "text": "512",
                "right": False,
                "why": "That is what one head of the full width could have. Eight heads divide it.",
            },
            {
                "text": "2048",
                "right": False,
                "why": "The weights, after the softmax, may have that. The scores may not.",
            },
        ],
    },
    {
        "question": "`q` is (B, T, h · d_head), all heads' queries. Which gives each head its part, (B, h, T, d_head)?",
        "choices": [
            {
                "text": "`q.view(B, h, T, d_head)`",
                "right": False,
                "why": "The shape is right. But it reads on in memory, so a row of a head is not one token's query.",
            },
            {
                "text": "`q.view(B, T, d_head, h).permute(0, 3, 1, 2)`",
                "right": False,
                "why": "This deals a query's numbers out in turns. The heads' columns lie side by side, not in turns.",
            },
            {
                "text": "`q.view(B, T, h, d_head).transpose(1, 2)`",
                "right": True,
                "why": "First each query is cut into heads, then the axes of tokens and heads change places.",
            },
            {
                "text": "`q.transpose(1, 2).reshape(B, h, T, d_head)`",
                "right": False,
                "why": "After the transpose each line has one number of each token, and those lines are cut.",
            },
        ],
    },
    {
        "question": "You double the number of heads and keep `d_model`. What grows?",
        "choices": [
            {
                "text": "the parameters",
                "right": False,
                "why": "Each matrix stays `d_model` × `d_model`, cut into narrower pieces.",
            },
            {
                "text": "the multiply-adds of `QKᵀ` and `AV`",
                "right": False,
                "why": "Twice as many products, each half as wide: `h · d_head` is the same.",
            },
            {
                "text": "the number of scores",
                "right": True,
                "why": "Every head has a table of its own, so the softmax and the memory for it double.",
            },
            {
                "text": "the rank that a head's scores can have",
                "right": False,
                "why": "It halves, as `d_head` does.",
            },
        ],
    },
    {
        "question": "By FLOPs, when does the core cost as much as a feed-forward network of width `4 · d_model`?",
        "choices": [
            {"text": "at T = d_model", "right": False, "why": "Often said. There the core is a quarter of it."},
            {"text": "at T = 2 · d_model", "right": False, "why": "That is where it equals the projections."},
            {
                "text": "at T = 4 · d_model",
                "right": True,
                "why": "4·T²·d_model is 16·T·d_model² there.",
            },
            {"text": "it depends on the number of heads", "right": False, "why": "Neither count has h in it."},
        ],
    },
    {
        "question": "Which bias of the layer never changes the output?",
        "choices": [
            {
                "text": "that of the queries",
                "right": False,
                "why": "It adds `b · k`, which differs from key to key, so the weights change.",
            },
            {
                "text": "that of the keys",
                "right": True,
                "why": "It adds `q · b` to all the scores of a row, and a softmax does not notice that.",
            },
            {
                "text": "that of the values",
                "right": False,
                "why": "Weights sum to 1, so it adds a constant: a change, though `out_proj` could make it too.",
            },
            {
                "text": "none: each of them does",
                "right": False,
                "why": "Write `q · (k + b)` out, and look at one row of scores.",
            },
        ],
    },
    {
        "question": "32 query heads, 8 key/value heads. Which one does query head 5 read, counting from 0?",
        "choices": [
            {"text": "head 1", "right": True, "why": "Four neighbours share: heads 4 to 7 read head 1."},
            {"text": "head 5", "right": False, "why": "That is what `repeat` gives: 0 to 7, and again from 0."},
            {"text": "head 0", "right": False, "why": "Heads 0 to 3 read that one."},
            {
                "text": "all 8, and takes the mean",
                "right": False,
                "why": "The mean is how a trained model is converted.",
            },
        ],
    },
    {
        "question": "The length of the repeated piece varies. Why is one layer of attention not enough for induction?",
        "choices": [
            {
                "text": "it has too few heads",
                "right": False,
                "why": "No number of heads helps: all read the same tokens, side by side.",
            },
            {
                "text": "a key is made of its own token, and cannot say what stood before it",
                "right": True,
                "why": "A layer below has to write that into the token first. So it takes two.",
            },
            {
                "text": "the causal mask hides the first occurrence",
                "right": False,
                "why": "It hides what comes later. The first occurrence, and the token after it, are earlier.",
            },
        ],
    },
    {
        "question": "Tokens of 1,024 numbers, 16 heads of 128, 8 heads of keys. Which shape has `W_O`?",
        "choices": [
            {
                "text": "1,024 × 1,024",
                "right": False,
                "why": "So it would be if 16 heads of 128 were 1,024 numbers. They are 2,048.",
            },
            {
                "text": "2,048 × 1,024",
                "right": True,
                "why": "From all that the query heads found side by side, back to the width of the stream.",
            },
            {
                "text": "2,048 × 2,048",
                "right": False,
                "why": "What comes out is added to a token, so it has to be as wide as one: 1,024.",
            },
            {
                "text": "1,024 × 1,024, for 8 heads of keys have 1,024 numbers",
                "right": False,
                "why": "Sharing keys leaves the query heads as many as they are, and each gives 128 numbers.",
            },
        ],
    },
    {
        "question": "A layer calls `F.scaled_dot_product_attention(…, dropout_p=0.1)`; you call `eval()`. What now?",
        "choices": [
            {
                "text": "no dropout, as in `nn.Dropout`",
                "right": False,
                "why": "`eval()` sets a flag in modules. A function has none and is told by its arguments alone.",
            },
            {
                "text": "a tenth of the weights is still dropped, at random",
                "right": True,
                "why": "Give it `0.1 if self.training else 0.0`.",
            },
            {
                "text": "the weights are kept, but still divided by 0.9",
                "right": False,
                "why": "Both or neither: what is kept is divided only where something is dropped.",
            },
        ],
    },
    {
        "question": "Switching one head off leaves the loss as it was. What follows?",
        "choices": [
            {
                "text": "the head does nothing",
                "right": False,
                "why": "Others may do the same, and make up for it. Switch the whole group off.",
            },
            {
                "text": "the head can be pruned, and others like it as well",
                "right": False,
                "why": "This one, perhaps. The others may be needed now that this one is gone.",
            },
            {
                "text": "on these texts the other heads suffice",
                "right": True,
                "why": "That is what was measured, with a zero in the place of this one head.",
            },
            {
                "text": "its weights are nearly equal everywhere",
                "right": False,
                "why": "The four induction heads have sharp weights, and each is worth little alone.",
            },
        ],
    },
]
