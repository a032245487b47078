"""The questions of day 1."""

DAY_1 = [
    {
        "question": "`Q` is (4, 8), `K` is (6, 8), `V` is (6, 3). What shape is the output?",
        "choices": [
            {
                "text": "(4, 6)",
                "right": False,
                "why": "That is the shape of the weights: one row per query, one column per key.",
            },
            {
                "text": "(6, 3)",
                "right": False,
                "why": "That is the shape of V. The output has one row per query, and there are 4.",
            },
            {"text": "(4, 3)", "right": True, "why": "One row for each of the 4 queries, `d_v` = 3 columns."},
            {
                "text": "none: n and m have to be equal",
                "right": False,
                "why": "Nothing forces that. K and V need the same number of rows, Q and K the same number of columns.",
            },
        ],
    },
    {
        "question": "In the matrix of weights, what sums to 1 (within rounding)?",
        "choices": [
            {
                "text": "every row",
                "right": True,
                "why": "A row is one query, and it divides its attention among the keys.",
            },
            {
                "text": "every column",
                "right": False,
                "why": "A column sum says how much attention a key receives. It can be more or less than 1.",
            },
            {
                "text": "every row and every column",
                "right": False,
                "why": "Rows do. In the worked example one column received more than 1, the two others less.",
            },
            {
                "text": "the whole matrix",
                "right": False,
                "why": "Each of the n rows sums to 1, so the whole matrix sums to n.",
            },
        ],
    },
    {
        "question": "All values lie between 0 and 5. Which output is impossible, whatever the queries and keys?",
        "choices": [
            {"text": "0.01", "right": False, "why": "Nearly all the weight on a value near 0 gives this."},
            {"text": "2.5", "right": False, "why": "A mean of values between 0 and 5 can well be this."},
            {
                "text": "5.2",
                "right": True,
                "why": "An output is a weighted mean of the values, and no mean exceeds the largest of them.",
            },
            {
                "text": "none: large enough scores reach any number",
                "right": False,
                "why": "Scores only move the weights, and these stay positive with sum 1.",
            },
        ],
    },
    {
        "question": "A query has the same score with each of 10 keys. What is its output?",
        "choices": [
            {
                "text": "the sum of the 10 values",
                "right": False,
                "why": "The weights sum to 1, so each is 0.1, which makes it the mean.",
            },
            {"text": "the mean of the 10 values", "right": True, "why": "Equal scores give equal weights, 0.1 each."},
            {
                "text": "zeros, since no key stands out",
                "right": False,
                "why": "The weights have to sum to 1 even if no key matches. Attention always answers.",
            },
            {
                "text": "it depends on whether the equal scores are large or small",
                "right": False,
                "why": "The softmax sees only differences between scores; adding the same to all changes nothing.",
            },
        ],
    },
    {
        "question": "You halve the temperature: every score doubles before the softmax. What happens to the weights?",
        "choices": [
            {
                "text": "nothing: doubling all the scores cancels in the fraction",
                "right": False,
                "why": "Adding the same to all cancels. Doubling does not: it squares every exponential.",
            },
            {"text": "they become more even", "right": False, "why": "That is what a higher temperature does."},
            {
                "text": "every weight doubles",
                "right": False,
                "why": "Then they would sum to 2. The softmax makes every row sum to 1.",
            },
            {
                "text": "the largest weight grows",
                "right": True,
                "why": "Differences double, so the leader gains share.",
            },
        ],
    },
    {
        "question": "Why does `softmax` subtract the largest score of the row first?",
        "choices": [
            {
                "text": "so that the weights become more even",
                "right": False,
                "why": "The weights do not change at all. Dividing the scores, not subtracting, makes them more even.",
            },
            {
                "text": "so that no exponential overflows",
                "right": True,
                "why": "The result stays: all exponentials shrink by one factor, which cancels in the fraction.",
            },
            {
                "text": "so that each row sums to 1",
                "right": False,
                "why": "The division by the sum does that, with or without the subtraction.",
            },
        ],
    },
    {
        "question": "You shuffle the tokens of a sentence and run self-attention again. The outputs are …",
        "choices": [
            {
                "text": "shuffled along with the tokens",
                "right": True,
                "why": "Otherwise they stay as they were: permutation equivariance. Order has to be put in separately.",
            },
            {
                "text": "unchanged, in the old order",
                "right": False,
                "why": "Each output belongs to its query, so it moves with its token.",
            },
            {
                "text": "different numbers, since the neighbours changed",
                "right": False,
                "why": "Attention has no notion of neighbours: scores depend on two tokens, not on where they stand.",
            },
        ],
    },
    {
        "question": "A text becomes 3 times as long. How do the weights of one head grow, in memory? (Part 11.)",
        "choices": [
            {
                "text": "3 times",
                "right": False,
                "why": "The queries, keys and values grow so. The weights have one number for each pair of tokens.",
            },
            {
                "text": "it depends on `d_k`",
                "right": False,
                "why": "`d_k` costs time, in each dot product. The weight that comes out is one number in any case.",
            },
            {"text": "9 times", "right": True, "why": "There are n·m of them, and both n and m are 3 times as large."},
            {
                "text": "27 times",
                "right": False,
                "why": "Two axes grow, n and m. `d_k` and `d_v` do not depend on the length of the text.",
            },
        ],
    },
]
