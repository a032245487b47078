"""The questions of day 2."""

DAY_2 = [
    {
        "question": "All entries of q and k are independent, with mean 0 and variance 1. What is the standard "
        "deviation of q·k for d_k = 100?",
        "choices": [
            {"text": "1", "right": False, "why": "That is what is left after dividing by √d_k."},
            {"text": "10", "right": True, "why": "The variances of 100 terms add up to 100, and √100 = 10."},
            {"text": "100", "right": False, "why": "That is the variance. The standard deviation is its root."},
            {
                "text": "it depends on the distribution",
                "right": False,
                "why": "The proof names none: coins, bell curves and lopsided entries all give √d_k.",
            },
        ],
    },
    {
        "question": "Which step of the proof falls when q = k?",
        "choices": [
            {
                "text": "`E[q_i k_i] = E[q_i] E[k_i]`",
                "right": True,
                "why": "A number times itself is never negative, so its mean is 1 and not 0 · 0.",
            },
            {
                "text": "`E[q·k] = E[q_1 k_1] + E[q_2 k_2] + …`",
                "right": False,
                "why": "The mean of a sum is the sum of the means, always. No assumption is needed.",
            },
            {
                "text": "`Var(c x) = c² Var(x)`",
                "right": False,
                "why": "That holds for any x: every squared distance is multiplied by c².",
            },
        ],
    },
    {
        "question": "Every entry of q and k is multiplied by 3. What happens to the standard deviation of the scores?",
        "choices": [
            {
                "text": "it stays, since the scale removes it",
                "right": False,
                "why": "The scale knows d_k, nothing else.",
            },
            {"text": "it is 3 times as large", "right": False, "why": "A score multiplies two such entries, 3 · 3."},
            {"text": "it is 9 times as large", "right": True, "why": "Each product q_i k_i is 9 times as large."},
            {
                "text": "it is 81 times as large",
                "right": False,
                "why": "That is the variance: the square of the factor 9.",
            },
        ],
    },
    {
        "question": "You measured a mean from 1,000 samples. Its standard error is to become 10 times smaller. "
        "How many samples do you need? (Part 4.)",
        "choices": [
            {"text": "about 3,200", "right": False, "why": "That divides the error by √3.2, about 1.8."},
            {"text": "10,000", "right": False, "why": "Ten times the samples divide the error by √10, about 3.2."},
            {
                "text": "100,000",
                "right": True,
                "why": "The error is s/√N, so 10 times less needs 100 times the samples.",
            },
            {
                "text": "none: more samples make the spread larger",
                "right": False,
                "why": "The spread s of single samples stays. The error of their mean, s/√N, falls.",
            },
        ],
    },
    {
        "question": "A weight is 0.99. How much of a small change of its own score does it pass on?",
        "choices": [
            {
                "text": "about 0.01 of it",
                "right": True,
                "why": "The slope is p(1 − p) = 0.99 · 0.01.",
            },
            {"text": "0.99 of it", "right": False, "why": "The slope is p(1 − p), not p: a weight near 1 is stuck."},
            {"text": "0.25 of it", "right": False, "why": "That is the largest slope there is, at p = 1/2."},
            {
                "text": "all of it",
                "right": False,
                "why": "No slope of a softmax exceeds 1/4, since p(1 − p) is largest at p = 1/2.",
            },
        ],
    },
    {
        "question": "One weight is 1 within rounding. Which gradient still arrives in full?",
        "choices": [
            {
                "text": "the one to Q",
                "right": False,
                "why": "Its path leads through the Jacobian of the softmax, and all slopes there are nearly 0.",
            },
            {"text": "the one to K", "right": False, "why": "Like that to Q, it has to pass the softmax."},
            {
                "text": "the one to V",
                "right": True,
                "why": "dV is the weights times dO: the chosen value gets all of it, without passing the softmax.",
            },
            {
                "text": "none of them",
                "right": False,
                "why": "Only the path through the softmax is blocked. Values are reached without it.",
            },
        ],
    },
    {
        "question": "Scores have standard deviation 20, and one weight of every row is nearly 1. Does subtracting the "
        "largest score make the weights more even?",
        "choices": [
            {
                "text": "yes: all scores become smaller, so the weights do too",
                "right": False,
                "why": "The same number leaves every score of the row, so the gaps, and the weights, stay.",
            },
            {
                "text": "no, the weights stay as they are",
                "right": True,
                "why": "The softmax sees only gaps. The shift prevents overflow; to shrink the gaps, divide.",
            },
            {
                "text": "only if d_k is large, since then scores are",
                "right": False,
                "why": "The shift changes no weight for any d_k. Dividing by √d_k does.",
            },
        ],
    },
    {
        "question": "Training has made matching queries and keys correlated. What does 1/√d_k guarantee for their "
        "scores?",
        "choices": [
            {
                "text": "mean 0 and standard deviation 1",
                "right": False,
                "why": "That needs independent entries. Correlated by ρ, the mean is ρ·√d_k after scaling.",
            },
            {
                "text": "that they stay below √d_k",
                "right": False,
                "why": "Nothing bounds them: entries may grow in training. QK-norm would, by its learned factor.",
            },
            {
                "text": "nothing",
                "right": True,
                "why": "The assumptions do not hold any more. The scale made the start independent of the width.",
            },
        ],
    },
]
