"""The questions of day 6."""

DAY_6 = [
    {
        "question": "Naive attention on a large GPU, long texts. Why do its matrix units mostly wait?",
        "choices": [
            {
                "text": "it computes more products than needed",
                "right": False,
                "why": "The fused kernels compute the same two products. Without a mask none of them can be left out.",
            },
            {
                "text": "the scores and the weights cross to memory and back",
                "right": True,
                "why": "Four crossings of 2 bytes for 4·d FLOPs: d/2 FLOPs a byte, too few to stay busy.",
            },
            {
                "text": "the cache of keys and values is too large",
                "right": False,
                "why": "Keys and values are T rows. It is the T × T square that costs, and it is not in the cache.",
            },
        ],
    },
    {
        "question": "Scores 2, then 5. After the first: m = 2, l = 1, o = v₀. What is o after the second?",
        "choices": [
            {
                "text": "v₀ + v₁",
                "right": False,
                "why": "v₀ was weighed from the peak 2. Seen from the new peak 5 it weighs e^(2 − 5).",
            },
            {
                "text": "e³ · v₀ + v₁",
                "right": False,
                "why": "The factor is e^(old − new), at most 1. The other way round, o would grow with every record.",
            },
            {
                "text": "e⁻³ · v₀ + v₁",
                "right": True,
                "why": "o shrinks by the same factor as l, and the new score is its own peak: e⁰ = 1.",
            },
        ],
    },
    {
        "question": "Two halves of the keys were attended to apart, and both outputs divided. May you average them?",
        "choices": [
            {
                "text": "yes, the halves are equally large",
                "right": False,
                "why": "Equally many keys, but not equally much weight: one half may hold all the good matches.",
            },
            {
                "text": "no, but with L of each half they can still be merged",
                "right": True,
                "why": "A half counts as much as its sum of exponentials, e^L: weigh the outputs by that.",
            },
            {
                "text": "no, the scores have to be computed again",
                "right": False,
                "why": "The sums say all that is needed. Merging never looks at a key twice.",
            },
        ],
    },
    {
        "question": "Tiled and naive attention, both in bfloat16. Which is closer to float64, and why?",
        "choices": [
            {
                "text": "tiled: its scores and sums are never stored in 16 bits",
                "right": True,
                "why": "They stay in float32 on the chip. Naive attention rounds scores and weights as it stores them.",
            },
            {
                "text": "naive: it rescales nothing",
                "right": False,
                "why": "Rescaling costs about one rounding in float32, far less than one in bfloat16.",
            },
            {
                "text": "neither: they are equal bit for bit",
                "right": False,
                "why": "They compute the same function in another order, and rounding depends on the order.",
            },
        ],
    },
    {
        "question": "The fast memory becomes four times as large, T and d stay. What happens to the bytes moved?",
        "choices": [
            {
                "text": "both naive and tiled move a quarter",
                "right": False,
                "why": "The square of naive attention has to cross all the same, whatever the fast memory holds.",
            },
            {
                "text": "tiled moves about a quarter, naive about as much as before",
                "right": True,
                "why": "Blocks of queries are four times as large, so keys and values pass by a quarter as often.",
            },
            {
                "text": "tiled now grows like T instead of T²",
                "right": False,
                "why": "Θ(T²d²/M) stays quadratic in T. It is the memory that is linear.",
            },
        ],
    },
    {
        "question": "What does the backward pass need from the forward, besides Q, K and V?",
        "choices": [
            {
                "text": "O and L",
                "right": True,
                "why": "P is made again tile by tile, from scores and L, and Δ is the row sum of dO ∘ O.",
            },
            {
                "text": "the weights P",
                "right": False,
                "why": "They are the square that was to be avoided. One number a query is enough to make them again.",
            },
            {
                "text": "m and l of every tile",
                "right": False,
                "why": "The final ones say everything, and together they are one number: L = m + log l.",
            },
        ],
    },
    {
        "question": "A causal kernel computes every tile and masks those above the diagonal. What is wrong?",
        "choices": [
            {
                "text": "the result: the future leaks",
                "right": False,
                "why": "Masked to −∞ before the exponential, nothing leaks. The result is right.",
            },
            {
                "text": "the time: it does twice the work that is needed",
                "right": True,
                "why": "Tiles above the diagonal add nothing. Stop the loop there, and mask on the diagonal only.",
            },
            {
                "text": "nothing: a GPU computes all tiles at once anyway",
                "right": False,
                "why": "It has a fixed number of processors, and each tile takes its time on one of them.",
            },
        ],
    },
    {
        "question": "A model that writes a long text token by token runs out of memory. Will FlashAttention help?",
        "choices": [
            {
                "text": "yes: memory becomes linear in T",
                "right": False,
                "why": "That of the scores does. One new token has one row of scores, which was never the problem.",
            },
            {
                "text": "no: it is the cache that grows, and the kernel leaves it as it is",
                "right": True,
                "why": "Fewer key/value heads, fewer bits, a window or pages help there: day 5.",
            },
            {
                "text": "yes: it recomputes keys and values instead of storing them",
                "right": False,
                "why": "It recomputes weights, and only in the backward pass. Keys and values are read from the cache.",
            },
        ],
    },
]
