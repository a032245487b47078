"""The reasons for the claims that end each lesson, in a few sentences: the backs of the cards that ask for them.

A reason stands under the words with which its claim begins, as they are in the lesson's Markdown.
"""

from __future__ import annotations

REASONS: dict[int, dict[str, str]] = {
    1: {
        "An output is a weighted mean": (
            "The weights of a row are positive and sum to 1, by the softmax. The set of all such means of some points "
            "is their convex hull, so no number of an output leaves the range of that number in the values."
        ),
        "Rows of the weights sum to 1": (
            "A row is one query, and the softmax divides it by its own sum. A column says how much attention one key "
            "gets from all queries, and nothing fixes that."
        ),
        "The scores are $n": (
            "There is one score for each of $n$ queries with each of $m$ keys. An output has one row a query, and is "
            "made of values, so it has their $d_v$ columns. Only $Q$ and $K$ have to agree on $d_k$, and $K$ and $V$ "
            "on $m$."
        ),
        "Queries and keys decide": (
            r"The weights are made from $QK^\top$ alone. The output is the weights times $V$: other values under the "
            "same weights change what comes back, and not where it comes from."
        ),
        "Equal scores give the mean": (
            r"Equal scores have equal exponentials, so each of $m$ weights is $1/m$. A score that lies $\Delta$ above "
            r"another has $e^\Delta$ times its weight: at 10 that is 22 026 times."
        ),
        "Attention without a mask": (
            "A score depends on two tokens and not on where they stand. Exchange two tokens, and their outputs are "
            "exchanged: $f(PX) = Pf(X)$. Order has to be put in separately."
        ),
        "Any token reaches any other": (
            "Each query has a score with each key, however far away it stands, and each of these $nm$ numbers is "
            "computed."
        ),
    },
    2: {
        "For independent entries with mean 0": (
            r"$q \cdot k$ is a sum of $d_k$ products $q_i k_i$. Each has mean $0 \cdot 0 = 0$ and variance $1 \cdot 1 "
            "= 1$, since the factors are independent. Variances of independent terms add up. No step asks for a "
            "distribution."
        ),
        "For one fixed query": (
            r"With $q$ fixed, $q \cdot k = \sum_i q_i k_i$ has the variance $\sum_i q_i^2 = \lvert q \rvert^2$. "
            r"Divided by $\sqrt{d_k}$ its spread is $\lvert q \rvert / \sqrt{d_k}$. Over queries the mean of $\lvert q "
            r"\rvert^2$ is $d_k$."
        ),
        "If $q = k$": (
            "Each product is a square then, $q_i^2$, with mean 1, and there are $d_k$ of them. Divided by "
            r"$\sqrt{d_k}$ the mean is still $\sqrt{d_k}$."
        ),
        "A standard error falls like": (
            "The variance of a mean of $N$ independent numbers is theirs divided by $N$; the error is its root. 95% "
            "of a bell curve lie within 1.96 standard deviations, so 5% of the intervals miss, with nothing being "
            "wrong."
        ),
        "Raw scores saturate": (
            r"Their differences grow like $\sqrt{d_k}$, and the ratio of two weights is $e$ to the difference. Divided "
            r"by $\sqrt{d_k}$ the differences keep one size at every width."
        ),
        "The slope of a weight": (
            r"With $p = e^s / (e^s + \text{rest})$ the derivative is $p - p^2$. A runner-up has $e^{-\Delta}$ times "
            r"the leader's weight. Where the leader has nearly all, the runner-up's $p$ is about $e^{-\Delta}$, and $1 "
            "- p$ is about 1."
        ),
        "A saturated softmax blocks": (
            "What flows back to $Q$ and $K$ passes the softmax, whose slopes are near 0 there. What flows to $V$ is "
            "multiplied by the weights themselves, and one of them is near 1."
        ),
        "The matrices get": (
            "$Q = XW_Q$ has a row for each token, and all rows use the same $W_Q$. A change of $W_Q$ acts through "
            r"every token, so what they ask for is added up, and $X^\top dQ$ is that sum."
        ),
        "Without the scale, at $d_k$ in the hundreds": (
            "Most rows are nearly one-hot, and nothing gets past their softmax. Where the two best keys happen to be "
            r"level, the slopes are as large as they can be, and nothing divides what comes through by $\sqrt{d_k}$."
        ),
        "The max-shift prevents": (
            "It takes the same number off every score of a row. All exponentials shrink by one factor, which cancels "
            "in the fraction. The scale changes the differences between scores, and so the weights."
        ),
        "Store in 16 bits": (
            "float16 keeps eleven binary digits. From 1024 on its numbers lie 1 apart, from 2048 on 2 apart: $2048 + "
            "1$ is rounded back to 2048. A sum in float32 has digits to spare."
        ),
        "The scale removes a dependence": (
            r"At the start entries are independent with a known variance, and the spread is $\sqrt{d_k}$. Training "
            "makes $q$ and $k$ longer and lets them go together, and a constant knows neither."
        ),
    },
    3: {
        "A leak makes the loss better": (
            "With the answer in its input a model learns to copy it. That lowers the loss and cannot be done in use, "
            "where the next token is not there yet. If tokens are drawn by lot from 8, no honest guess does better on "
            r"new texts than 1/8 for each token, which costs $\log 8$."
        ),
        "A causal mask ends": (
            "Exchange two tokens, and a token between them now has another one before it. Within one layer the tokens "
            "before a query are still a set: weights and blend do not ask for their order."
        ),
        "Blocked weights are exactly 0": (
            r"$e^{-\infty} = 0$, in floats too, so a blocked key takes no share of the sum. The others are divided by "
            "their own sum. A row that may see nothing has no sum to divide by, and is to hold zeros."
        ),
        "Weights of 0 prove nothing": (
            "The blocked keys were in the sum by which the row was divided. Change a later token, and the allowed "
            "weights change, though its own weight shows as 0."
        ),
        "With renormalising": (
            "The allowed exponentials, divided by anything and then by their own sum, are what they should be. If a "
            "blocked score lies far above, they have all become 0 in floats before the mask, and 0 / 0 is left."
        ),
        "−1e9 and −1e4": (
            "In a fully masked row each score gets the same number, so the mask drops out of the softmax: −1e4 gives "
            "what no mask gives, −1e9 swallows the scores and gives equal shares. A score above 10 000 outgrows −1e4. "
            r"float16 ends at 65 504, so −1e9 becomes $-\infty$ there."
        ),
        "The floor of a dtype": (
            r"There is no number below the lowest one, so the floor plus the floor is $-\infty$, and a row of these "
            "gives NaN. `&` of booleans cannot overflow, and leaves one fill at the end."
        ),
        r"Add $-\infty$ and patch": (
            r"The softmax of a row of $-\infty$ is 0 / 0. Where its NaN is replaced the gradient sent back is 0, and "
            r"on its way through the softmax 0 meets NaN: $0 \cdot \text{NaN}$ is NaN, and it spreads to everything "
            "before."
        ),
        "Changes miss a leak": (
            "A change tries one direction and one size. A slope holds at the one point where it is taken, and along "
            "ways that autograd sees. Both ask whether the future gets in, and never whether the past does."
        ),
        "Padding blocks columns": (
            "What must not be looked at is a key, and keys are columns. The mask of a text is the same for all heads "
            "and all queries, so these two axes have the size 1 and are broadcast: $(B, 1, 1, m)$."
        ),
        "Texts in one row": (
            "The causal mask alone lets a text see those before it. A text's first token is at place 0, wherever it "
            "stands in the row. What follows the last token belongs to another text, so there is nothing to guess."
        ),
        "Decoding needs the lower right": (
            "The $n$ queries are the last of $m$ tokens, so query $i$ stands at place $i + m - n$, and the last one "
            "sees all keys. The upper left takes query 0 for the first token of the text, which sees one key."
        ),
        "A model that does not learn": (
            "Each of these can be trusted only when those before it are in order. A loss far from that of blind "
            "guessing at the start says that the first guesses are loud, or that places count which ask nothing. "
            "Scores in the tens make most rows nearly one-hot, a wrong mask makes any row wrong, and all of these act "
            "on the gradients."
        ),
    },
    4: {
        "A head has one row of weights": (
            r"One softmax a query gives one blend. $QK^\top$ is a product through $d_\text{head}$ columns, so its rows "
            r"are mixtures of $d_\text{head}$ rows. The exponential works entry by entry and keeps no such bound."
        ),
        "The output is a sum over heads": (
            r"The heads lie side by side in one row, and $W_O$ is multiplied to it. Rows 0 to $d_\text{head} - 1$ of "
            "$W_O$ meet head 0 alone, the next ones head 1. So each head adds its own product."
        ),
        "`view(B, h, T, d_head)`": (
            "`view` reads the numbers in the order in which they lie: token by token. So a head gets whole tokens, "
            "cut in pieces, and not its part of each token. Put together in the same way, the pieces come back in the "
            "order of the text, so a causal mask still lets no later token in."
        ),
        r"$4d_\text{model}^2$ parameters": (
            r"The heads share the width: $h$ matrices of $d_\text{model} \times d_\text{head}$ make one of "
            r"$d_\text{model} \times d_\text{model}$, and there are four. A multiply-add is 2 FLOPs: $2 \cdot 4\,T "
            r"d_\text{model}^2$. Core: $2 \cdot 2\,T^2 d_\text{head}$ in each of $h$ heads. Each head has $T^2$ scores "
            "of its own, $hT^2$ in all."
        ),
        "The core equals the projections": (
            r"Set $4T^2 d_\text{model}$ equal to $8T d_\text{model}^2$, to the $16T d_\text{model}^2$ of a network "
            r"with $d_\text{ff} = 4d_\text{model}$, and to their sum. The scores are many numbers on which little is "
            "done, so moving them costs time that FLOPs do not show."
        ),
        "One fused matrix": (
            "Columns of a product do not know of each other, so $X$ times three matrices side by side is the three "
            "products side by side. With many tokens each product keeps a processor busy by itself."
        ),
        "The bias of the keys": (
            r"$q \cdot (k + b) = q \cdot k + q \cdot b$: the same number in every score of a row, which the softmax "
            "does not see. Weights sum to 1, so a bias of the values comes out as itself, and through $W_O$ as a "
            "constant."
        ),
        r"$h \cdot d_\text{head}$ need not be": (
            r"$W_O$ is $h d_\text{head} \times d_\text{model}$. Whatever the heads give together, it leads back to the "
            "width of a token."
        ),
        "Attention and feed-forward do not replace": (
            "Each reads the stream and adds its result to it. The stream is as wide everywhere, what one layer wrote "
            "later ones can read, and a block that adds nothing leaves all as it was."
        ),
        "Grouped heads save memory": (
            "Keys and values are kept and read once for each group. Each query head still has scores and a blend of "
            r"its own: $4T^2 d_\text{model}$ FLOPs as before."
        ),
        "Matching by content takes two layers": (
            "To go on as before, a query looks for the token *after* an earlier one like itself. In the first layer "
            "that token's key says only what it is. A layer has to write into it which token stood before it, and the "
            "next one can match that."
        ),
        "Ablation of one head": (
            "If another head does the same, nothing is lost without the first. A weight says where a head looks. What "
            "it brings goes through values and $W_O$, and may be nothing."
        ),
    },
    5: {
        "Of the scores of a step": (
            "Query $i$ is used in row $i$ alone, and that row was finished at its own step. Keys and values are used "
            "in every later row."
        ),
        "It is the causal mask": (
            "An earlier token sees nothing of a new one, so its output, and its key and value in the next layer, stay "
            "as they are. In an encoder every token sees the new one, and all of them change."
        ),
        "Cached logits equal": (
            "The same numbers are computed, some in another order of additions. Wrong positions or a wrong mask do "
            "not show in the first step, where the prompt went through as a whole."
        ),
        "At a prefix of 512": (
            "Without a cache step $n$ computes $n$ rows, with one it computes 1: $N(N + 1)/2$ against $N$. Each step "
            "reads all weights and starts all operations, for one row as for 512."
        ),
        "A cache takes": (
            r"A key and a value, so 2, in each layer, for each head of keys, $d_\text{head}$ numbers for each token of "
            r"each text. LLaMA 7B: $2 \cdot 32 \cdot 32 \cdot 128$ numbers of 2 bytes are 524 288 bytes."
        ),
        "Prefill waits for arithmetic": (
            "In the prefill a weight that was read serves all tokens of the prompt, in decoding one token a text. The "
            "texts of a batch use the same weights, and each has a cache of its own. A batch reads an expert if any "
            "of its tokens goes there."
        ),
        r"$q \cdot (c W)": (
            "A matrix that acts on every key can act on the one query in its place. Then each head's query meets the "
            "latent itself, and what was read once serves all heads. A rotation by position would stand between, "
            "another one for each token."
        ),
        "MQA, GQA and MLA": (
            "They keep fewer heads of keys and values, or one latent for all heads: the cache is smaller for as long "
            "as a text lives. FlashAttention does not write down the scores, which live for one step, and reads the "
            "same cache."
        ),
        "On the left padding": (
            "On the left all texts end in one column, but padding lies before the real tokens, where every query "
            "would see it. On the right the last real token stands in another column for each text, and the logits of "
            "the last column belong to padding."
        ),
        "A ring holds its keys": (
            "A blend is a sum, and has no order. Each key was turned by its own position before it was stored, so it "
            "brings that along."
        ),
        "Pages leave less than a block": (
            "A text takes a block when a token needs one, so only its last block has open slots. A table says where "
            "its blocks lie, and two tables can name the same block until one text has to write into it."
        ),
    },
    6: {
        "Naive attention with $d = 128$": (
            "It does $4T^2 d$ FLOPs. It writes and reads both $S$ and $P$, $4T^2$ numbers of 2 bytes, and $Q$, $K$, "
            r"$V$ and $O$ on top. That is at most $4T^2 \cdot 128 / 8T^2 = 64$ FLOPs a byte, and $T$ cancels. Where a "
            "chip could do 295 in the time of a byte, it waits."
        ),
        "One pass suffices": (
            r"$l$ and $o$ are sums of $e^{s - m}$, with and without the value. $e^{s - m_\text{new}}$ is $e^{s - "
            r"m_\text{old}}$ times $e^{m_\text{old} - m_\text{new}}$, the same factor for every term, so it can be "
            "applied to the sum."
        ),
        "Partial results merge": (
            "Each part $(m, l, o)$ holds sums relative to its own $m$. Brought to the common maximum they are added, "
            "and addition asks for no order and no grouping. Tiles, shares of a processor and machines in a ring are "
            "such parts."
        ),
        "FlashAttention is exact": (
            "Nothing is left out or approximated. Floats that are added in another order round in another way. Naive "
            "attention rounds scores and weights to bfloat16 when it stores them, the tiled one keeps its sums in "
            "float32."
        ),
        "Memory becomes linear": (
            r"No $T \times T$ matrix is kept, only $m$, $l$ and $o$ of each query. A block of about $M/d$ queries "
            "fits, so there are about $Td/M$ blocks, and each reads all keys and values, $2Td$ numbers. Every score "
            "is still computed."
        ),
        "A kernel is one program": (
            "The programs run side by side and differ in their number, which says which queries are theirs. A last "
            r"block reaches past the end. A score of 0 would count $e^0 = 1$ there, one of $-\infty$ counts 0."
        ),
        "$L$ and $O$ are all": (
            r"$L = m + \log l$ makes the weights anew from the scores, tile by tile. The softmax needs $\sum_j "
            r"P_{ij}\, dP_{ij}$, and that is $dO_i \cdot O_i$, since $dP = dO\,V^\top$ and $O = PV$."
        ),
        "Causal tiles are skipped": (
            "A tile above the diagonal has only keys that none of its queries may see: it adds 0. Below the diagonal "
            "every key may be seen. Only tiles that the diagonal crosses hold both kinds."
        ),
        "The KV cache stays": (
            "It holds keys and values of all tokens, which FlashAttention reads as they are. What it never writes "
            "down are scores and weights."
        ),
    },
    7: {
        "A step reads all weights": (
            "Its time is a base, which is that reading, and a little for each token. Ten requests in one step pay the "
            "base once, and one after another they pay it ten times."
        ),
        "Continuous batching refills": (
            "A slot whose request is done would be empty until the longest of the batch is done, too. Attention runs "
            "over each request's own cache, so who sits in the next slot changes nothing but rounding."
        ),
        "Near saturation": (
            "Requests that come at random come in bunches. The less room is left, the longer it takes to work off a "
            "bunch, and above the capacity the queue only grows. Throughput is the capacity from there on."
        ),
        "Pages leave": (
            "Only the last block of a request can have empty slots. Its blocks may be taken away and its tokens "
            "computed again, or swapped back, and the same keys and values are there."
        ),
        "A prompt that is cached whole": (
            "A cache keeps keys and values and no logits. The next token comes from the logits of the last one, so "
            "that one has to run. Blocks are shared whole, so with it the rest of its block runs."
        ),
        "One changed token": (
            "Keys and values of a token depend on all tokens before it, and so the name of each block holds the name "
            "of the block before."
        ),
        "A budget of tokens": (
            "A step takes longer the more tokens it computes. Without a budget a whole prompt is one step, and "
            "all who decode wait for it; with one a step computes no more than the budget."
        ),
        "Decodes go first": (
            "A decode needs one token, and somebody waits for it. A prompt can be cut anywhere, since each chunk "
            "finds the keys and values of those before it in the cache."
        ),
        "Verifying is one pass": (
            "Under the causal mask no token sees a later one. So one pass over the drafts gives the same "
            "distribution after each prefix as passes one by one would."
        ),
        "Speculative sampling keeps": (
            r"A token comes out as a kept draft with probability $\min(p, q)$, and from the remainder with $(p - "
            "q)_+$. The sum is $p$. The drafter decides only how often a draft is kept."
        ),
        "After a refusal": (
            r"Kept drafts have given each token $\min(p, q)$. What is missing to $p$ is $(p - q)_+$, and only that "
            "may be added. A draw from $p$ adds to tokens that have their share already."
        ),
        "A draft is kept": (
            r"$x$ is drafted with $q(x)$ and kept with $\min(1, p(x)/q(x))$: together $\min(p(x), q(x))$, summed "
            "over all tokens. What is missing to 1 is half the sum of $|p - q|$."
        ),
        "A round gives": (
            r"All $\gamma$ drafts may be kept, and the pass has given the law after the last too: one more draw. "
            "If the first is refused, the remainder still gives one."
        ),
        "Speculation can lose": (
            "Few tokens wait for the weights, so more of them cost little. With many requests a token costs time "
            "of its own, and refused drafts take it from others. Long caches soften this: a request's cache is read "
            "once, however many of its drafts are verified."
        ),
        "Split keys merge": (
            r"Each part gives its output and lse, the log of its sum of exponentials. Weighed by $e^\text{lse}$ the "
            "parts add up to the sums over all keys."
        ),
        "A handed-over cache": (
            "A cache has keys and values of every token of the prompt. A sum over heads has one row for each "
            "token that the step computes, and the context does not enter."
        ),
    },
}
