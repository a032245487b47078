"""The questions of day 5."""

DAY_5 = [
    {
        "question": "Why does a causal model keep old keys and values, but no old queries?",
        "choices": [
            {
                "text": "queries are cheap to compute again",
                "right": False,
                "why": "They cost as much as keys. They are not computed again either: nobody asks for them.",
            },
            {
                "text": "the new row of scores needs the new query only, and all keys and values",
                "right": True,
                "why": "Query `i` is used in row `i` and nowhere else, and row `i` was finished at its own step.",
            },
            {
                "text": "keys and values do not depend on the position, queries do",
                "right": False,
                "why": "RoPE turns keys as well. A key may be kept because its own position never changes.",
            },
        ],
    },
    {
        "question": "A cached decoder gets the first new token right, and then writes nonsense. What do you suspect?",
        "choices": [
            {
                "text": "the weights were not read again",
                "right": False,
                "why": "They are read at every step, cache or not, and they do not change.",
            },
            {
                "text": "rounding, which grows from step to step",
                "right": False,
                "why": "Cached and uncached logits differ in the last digits only. That turns no token into nonsense.",
            },
            {
                "text": "the new token's position is counted from 0 in each call",
                "right": True,
                "why": "In the prefill positions do start at 0, so the first token is right. In decode they go on.",
            },
        ],
    },
    {
        "question": "512 tokens are written from the first one on. How many times fewer rows does the cache compute?",
        "choices": [
            {
                "text": "512 times",
                "right": False,
                "why": "That is the last step alone. The early ones have short prefixes, and little to save.",
            },
            {
                "text": "256.5 times",
                "right": True,
                "why": "512 · 513 / 2 rows against 512: `(N + 1) / 2`.",
            },
            {
                "text": "about 29 times, as measured",
                "right": False,
                "why": "That was seconds, for one step. Rows are counted, and their number needs no clock.",
            },
        ],
    },
    {
        "question": "Why is a cached step so much less than 512 times faster, though it does 512 times less?",
        "choices": [
            {
                "text": "it reads as many weights and starts as many operations, all for one row",
                "right": True,
                "why": "That time stays. Without a cache 512 rows share it, and are computed at a better rate.",
            },
            {
                "text": "appending to the cache takes the rest of the time",
                "right": False,
                "why": "A reserved slot is written in microseconds.",
            },
            {
                "text": "the softmax still runs over all `T` rows",
                "right": False,
                "why": "Over one row of `T` scores.",
            },
        ],
    },
    {
        "question": "Which of these does not change the bytes of a KV cache?",
        "choices": [
            {
                "text": "the number of layers",
                "right": False,
                "why": "Each layer keeps keys and values of its own.",
            },
            {
                "text": "the number of texts in the batch",
                "right": False,
                "why": "Every text has a cache of its own, unless they share a beginning in pages.",
            },
            {
                "text": "the number of query heads, with key and value heads as they are",
                "right": True,
                "why": "The formula has `h_kv` in it and not `h`. That is the point of grouped heads.",
            },
        ],
    },
    {
        "question": "The batch of a decode step grows from 1 to 64. Which FLOPs a byte grow with it?",
        "choices": [
            {
                "text": "those of the weight matrices",
                "right": True,
                "why": "A weight that was fetched serves 64 rows instead of one.",
            },
            {
                "text": "those of attention over the cache",
                "right": False,
                "why": "64 texts bring 64 caches: 64 times the FLOPs, and 64 times the bytes.",
            },
            {
                "text": "both",
                "right": False,
                "why": "The weights are shared by the batch. The caches are not.",
            },
        ],
    },
    {
        "question": "A server runs out of memory because of its caches. Does FlashAttention help?",
        "choices": [
            {
                "text": "yes, it stores no keys and values",
                "right": False,
                "why": "It reads the same keys and values from the same cache.",
            },
            {
                "text": "yes, its tiles are smaller than pages",
                "right": False,
                "why": "Tiles are parts of a computation and pages parts of a store. They have nothing to do with it.",
            },
            {
                "text": "hardly: it removes the scores, which live for a moment, and leaves the cache as it is",
                "right": True,
                "why": "Fewer heads of keys and values, a latent, a window, fewer bits or pages shrink what stays.",
            },
        ],
    },
    {
        "question": "Blocks of 16. Three replies share a prompt of 40 tokens, and each writes a token. How many blocks "
        "are in use?",
        "choices": [
            {
                "text": "3",
                "right": False,
                "why": "Before they write. Then each needs its own copy of the third block, which has 8 tokens in it.",
            },
            {
                "text": "5",
                "right": True,
                "why": "Two full blocks stay shared. The open one is there three times: two copies, and the original.",
            },
            {
                "text": "9",
                "right": False,
                "why": "That would be three tables without anything shared.",
            },
        ],
    },
    {
        "question": "Latent attention decodes with W_UK absorbed. What becomes of the keys of its heads?",
        "choices": [
            {
                "text": "they are made from the latents at each step, and thrown away again",
                "right": False,
                "why": "That would take a product with W_UK for every token. One product turns the query instead.",
            },
            {
                "text": "they lie in the cache, in place of the latents",
                "right": False,
                "why": "The cache holds one latent a token, for all heads together. That is what makes it small.",
            },
            {
                "text": "nobody ever makes them",
                "right": True,
                "why": "`q · (c W) = (q Wᵀ) · c`: the turned query meets the latents as they are.",
            },
        ],
    },
]
