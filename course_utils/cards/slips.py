"""The known mistakes of the checks that a card is made of: what somebody does, under exercise and name of the mistake.

The card asks what is wrong with it, and its back is what the check says to that mistake. So only those stand here whose
message says something without the exercise at hand, and gives no line of its answer away. Left out on purpose are
numbers worked by hand, the bug to be found and the tests to be written: there the message is the answer.
"""

from __future__ import annotations

SLIPS: dict[int, dict[tuple[str, str], str]] = {
    1: {
        ("softmax_row", "softmax without max-shift"): (
            "Your softmax divides $e^x$ by the sum of all $e^x$. On paper that is right. You write it as a program."
        ),
        ("softmax_row", "shift by the largest absolute value"): (
            "So that no exponential overflows, you subtract the largest absolute value of the row from every score."
        ),
        ("softmax_row", "entries clipped"): "So that no exponential overflows, you clip all scores at 700.",
        ("softmax_row", "one sigmoid each"): "To get weights you put each score of a row through a sigmoid.",
        ("scores", "cosine similarity"): "As scores you take the cosines of the angles between queries and keys.",
        ("scores", "averaged over d_k"): "As a score you take the mean of the $d_k$ products of query and key.",
        ("scale_scores", "root of the number of keys"): r"There are $m$ keys. You divide the scores by $\sqrt m$.",
        ("attention_lists", "K not transposed"): "$Q$ and $K$ are both 4 × 4, and you compute the scores as `Q @ K`.",
        ("attention_lists", "softmax over queries"): "Your softmax runs down the columns of the scores.",
        ("attention_lists", "scaling after softmax"): r"You take the softmax first, and then divide by $\sqrt{d_k}$.",
        ("attention_lists", "keys blended in place of values"): "The weights are right, and with them you blend $K$.",
        ("attention_lists", "hard maximum"): "Each query takes the value of the key that scores highest.",
        ("soft_lookup", "temperature after softmax"): (
            "To sharpen a look-up you divide its weights by a temperature of 0.5."
        ),
    },
    2: {
        ("dot_product_stats", "error over samples"): (
            "For the standard error of a mean you divide the standard deviation by the number of samples."
        ),
        ("dot_product_stats", "one query or key for all samples"): (
            "To measure how far dot products spread, you draw one query, and let it meet 10 000 random keys."
        ),
        ("stable_softmax", "small exponentials left out"): (
            "In a softmax over many entries you set all exponentials below $10^{-6}$ to 0, since they are so small."
        ),
        ("logsumexp", "shift not added back"): (
            r"For $\log \sum_i e^{x_i}$ you subtract the largest entry from all, add up the exponentials and take the "
            "logarithm."
        ),
        ("logsumexp", "the largest entry"): r"In place of $\log \sum_i e^{x_i}$ you take the largest $x_i$.",
        ("softmax_jacobian", "the diagonal only"): (
            "The slope of a weight along its own score is $p_i(1 - p_i)$. For the whole Jacobian of a softmax you "
            "write these numbers on the diagonal, and zeros elsewhere."
        ),
        ("correlated", "variance smaller with correlation"): (
            r"The entries of $q$ and $k$ have a correlation of $\rho$. You say that the variance of a product $q_i "
            r"k_i$ falls to $1 - \rho^2$."
        ),
        ("attention_scale", "the root of d_model"): (
            r"A layer has $h$ heads of $d_\text{head}$ numbers each. You scale the scores by $1/\sqrt{d_\text{model}}$."
        ),
        ("attention_backward", "p · g left out"): (
            r"The gradient along a row $p$ of weights is $g$. Along the scores of that row you write $p \circ g$."
        ),
        ("attention_backward", "the sum of g"): (
            r"The gradient along a row $p$ of weights is $g$. Along the scores you write $p \circ (g - \sum_j g_j)$."
        ),
        ("attention_backward", "dq and dk without the scale"): (
            r"On the way forward you divide the scores by $\sqrt{d_k}$, on the way back to $Q$ and $K$ you do not."
        ),
        ("layer_backward", "a matrix for each sequence"): (
            "A batch of 8 sequences goes through a layer. For $dW_Q$ you return 8 matrices, one a sequence."
        ),
        ("layer_backward", "the mean over the tokens"): (
            "Every token has its wish for $W_Q$. For $dW_Q$ you take the mean over the tokens."
        ),
        ("layer_backward", "dx by way of q alone"): (
            "In self-attention $q$, $k$ and $v$ are made from $x$. For $dx$ you follow the gradient back through $q$."
        ),
        ("half_attention", "float32 without a shift"): (
            "In float16 your softmax overflows. You compute it in float32, and subtract nothing."
        ),
        ("half_attention", "exponentials added up in float16"): (
            "In float16 you subtract the largest score of each row, take exponentials, and add them up."
        ),
        ("half_attention", "scores cut at 80"): "So that `exp` cannot overflow, you cut all scores at 80.",
    },
    3: {
        ("causal_mask", "diagonal excluded"): "Your causal mask lets each token see those before it, and only those.",
        ("masked_softmax", "mask after softmax"): "You take the softmax, and then set the blocked weights to 0.",
        ("masked_softmax", "mask after softmax, renormalised"): (
            "You take the softmax, set the blocked weights to 0, and divide each row by its new sum."
        ),
        ("masked_softmax", "NaN in a fully masked row"): (
            r"You fill blocked scores with $-\infty$ and take the softmax. Some queries may see no key at all."
        ),
        ("masked_softmax", "−1e9 added"): (
            "You add $-10^9$ to blocked scores, which are then far below all others. Some queries may see no key at "
            "all."
        ),
        ("masked_softmax", "a fill of −1e9"): (
            "You replace blocked scores by $-10^9$, which is far below all others. Some queries may see no key at all."
        ),
        ("masked_softmax", "scores multiplied by the mask"): "You multiply the scores by a mask of zeros and ones.",
        ("masked_softmax", "mask added as 0 and 1"): (
            "You add the mask to the scores: 1 where a key is allowed, 0 else."
        ),
        ("masked_softmax", "shift by the largest of all"): (
            "You subtract the largest score of each row, take exponentials, and set those of blocked keys to 0."
        ),
        ("masked_softmax", "0 times infinity"): (
            r"Your mask is 0 where a key is allowed and 1 where not. You multiply it by $-\infty$ and add it."
        ),
        ("masked_softmax", "zero scores taken for blocked"): (
            "You multiply the scores by a mask of zeros and ones, and then block every score that is 0."
        ),
        ("causal_attention", "−1e4 added"): "For blocked keys you add −10 000 to the score, and no row is empty.",
        ("padding_mask", "shape (B, m)"): (
            "Your padding mask has the shape $(B, m)$. The scores have $(B, h, n, m)$, and the two are broadcast."
        ),
        ("packed_texts", "causal only"): "Several texts lie in one row, one behind the other. You mask causally.",
        ("packed_texts", "compared with ≤"): (
            "Several texts lie in one row, numbered 0, 1, 2. A query may see a key before it if the key's number is "
            "at most its own."
        ),
        ("lower_right", "top-left alignment"): (
            "A cache holds 5 keys, and 3 new tokens come. The 3 × 8 mask has its triangle at the upper left."
        ),
        ("first_leak", "changes added up"): (
            "To find a leak you change a later token, add up the changes of all numbers of an output, and see whether "
            "the sum is 0."
        ),
        ("first_leak", "NaN as the change"): (
            "To find a leak you set a later token to NaN. Where NaN comes out, you say, something leaks."
        ),
        ("convert_mask", "unchanged"): (
            "In your mask True means *may attend*. You hand it to `nn.MultiheadAttention` as it is."
        ),
        ("cross_attention", "memory multiplied by the mask"): (
            "To hide padding in the memory that others attend to, you set its padded tokens to zeros."
        ),
    },
    4: {
        ("merge_heads", "heads stacked as tokens"): (
            r"The heads gave $(B, h, T, d_\text{head})$. You put them together as $(B, h \cdot T, d_\text{head})$."
        ),
        ("multi_head", "merged without transposing"): (
            r"The heads gave $(B, h, T, d_\text{head})$. You reshape that to $(B, T, h \cdot d_\text{head})$."
        ),
        ("multi_head", "scaling by the root of the number of heads"): (
            r"There are $h$ heads. You divide the scores of each by $\sqrt h$."
        ),
        ("multi_head", "the largest of all scores subtracted"): (
            "Before `exp` you subtract the largest score of the whole array. No exponential overflows."
        ),
        ("count_parameters", "every head as wide as the model"): (
            r"Each of $h$ heads has a $W_Q$ of its own. You count $h \cdot d_\text{model}^2$ parameters for them."
        ),
        ("count_parameters", "everything grouped"): (
            "With grouped heads, a quarter as many for keys and values, you count a quarter of all parameters."
        ),
        ("count_flops", "multiply-adds"): "You count one FLOP for each number that is multiplied and added to a sum.",
        ("count_flops", "three projections"): (
            r"For the projections of a layer you count $6\,T d_\text{model}^2$ FLOPs."
        ),
        ("count_flops", "core without its width"): r"For $Q K^\top$ and the blend you count $4T^2$ FLOPs.",
        ("grouped_query", "first key head for all"): (
            "There are 8 heads of queries and 2 of keys. Every query head reads key head 0."
        ),
        ("grouped_query", "mean of the key heads"): (
            "There are 8 heads of queries and 2 of keys. Every query head reads the mean of the two."
        ),
        ("induction_score", "the same token"): (
            "Random text is repeated after a period. To find induction heads you measure how much query $i$, in the "
            "second copy, attends to the first occurrence of its own token."
        ),
        ("head_ablation", "heads alone"): (
            "To see what a head is worth, you switch off all the others, and look at the loss."
        ),
        ("head_ablation", "the largest change"): "You call the head important whose absence changes the loss most.",
        ("head_ablation", "the change of the logits"): (
            "You call the head important whose absence moves the logits most."
        ),
        ("head_ablation", "the slope in place of the loss"): (
            "To see what is lost without a head, you take the gradient of the loss along a factor on its output."
        ),
    },
    5: {
        ("cached_step", "its own key left out"): (
            "In each step the new query attends to the cache, and then its own key is put behind it."
        ),
        ("cached_step", "the first key only"): (
            "In each step you mask the one new row of scores as a causal mask's first row would."
        ),
        ("cached_step", "one list for every continuation"): (
            "A cache is a list to which each step appends. You continue one prompt in two ways."
        ),
        ("generate_cached", "recomputed at every step"): (
            "You generate text: at each step all tokens so far go through the model, and the last logits choose."
        ),
        ("generate_cached", "positions from 0 at each step"): (
            "After the prompt you call the model with one token at a time. It counts positions within a call."
        ),
        ("generate_cached", "the prompt's last token twice"): (
            "The prompt filled the cache. For the first new token you send its last token through the model."
        ),
        ("generate_cached", "the cache not updated"): "Each step of decoding gets the cache that the prompt left.",
        ("generate_cached", "a cache kept between calls"): "A second text begins with the cache of the first one.",
        ("cache_bytes", "tokens squared"): "A text becomes twice as long. You reserve four times the cache.",
        ("decode_intensity", "the same heads on both sides"): (
            "For the FLOPs a byte of decoding with grouped heads you say: the number of heads cancels."
        ),
        ("decode_intensity", "every token a query"): (
            "For one decode step you count FLOPs that grow with the square of the tokens."
        ),
        ("absorbed_step", "keys or values made"): (
            "Latent attention in a decode step: from all latents in the cache you make the keys of all heads."
        ),
        ("absorbed_step", "scaled by the latent"): (
            "Latent attention: you turn the query by $W_{UK}$, meet the latents and divide by "
            r"$\sqrt{d_\text{latent}}$."
        ),
        ("ring_cache", "not put in order"): (
            "A window of 4 tokens is kept in 4 slots, used in turn. You show them as slot 0, 1, 2, 3."
        ),
        ("ring_cache", "starts afresh when full"): "A window of 4 tokens is full. You empty it, and go on.",
        ("paged_cache", "refused in silence"): "No block is free. The paged cache leaves the new token out.",
        ("paged_cache", "a new block too early"): "A paged cache takes the next block as soon as one is full.",
        ("paged_cache", "blocks in the order of their numbers"): (
            "A text's tokens lie in blocks 7, 2 and 5 of a paged cache. You read blocks 2, 5 and 7."
        ),
        ("paged_cache", "freed, but its table kept"): (
            "A text is done. Its blocks go back to the pool, and its table of blocks stays."
        ),
    },
    6: {
        ("online_softmax", "l is not rescaled"): (
            r"You read scores one by one and keep their maximum $m$ and $l = \sum e^{s - m}$. A larger score comes: "
            "you update $m$, and add 1 to $l$."
        ),
        ("online_softmax", "the factor upside down"): (
            r"When the running maximum grows, you multiply the running sum by $e^{m_\text{new} - m_\text{old}}$."
        ),
        ("online_softmax", "l begins anew at each maximum"): (
            "When the running maximum grows, you begin the running sum at 1 again."
        ),
        ("online_softmax", "m begins at 0"): "Before the first score you set the running maximum to 0.",
        ("online_softmax", "plain exponentials"): "In one pass over the scores you add up $e^s$ of each.",
        ("online_softmax", "NaN from −∞ − (−∞)"): (
            r"The first scores of a row are masked, $-\infty$ each. For the factor you compute $e^{m - m_\text{new}}$."
        ),
        ("online_softmax", "two passes"): (
            "A stream of scores can be read once. You take their maximum, and then the sum of $e^{s - m}$."
        ),
        ("merge_partials", "neither l nor o is rescaled"): (
            "Two workers each met half of the keys and report $(m, l, o)$. You add up both $l$ and both $o$."
        ),
        ("merge_partials", "only a is rescaled"): (
            "You merge two partial results $a$ and $b$, and rescale $a$ alone before you add."
        ),
        ("merge_partials", "exponentials of the maxima"): (
            r"For the factor of a part you divide $e^{m_\text{part}}$ by $e^m$."
        ),
        ("merge_partials", "o is divided by l"): "Each time two parts were merged, you divide $o$ by $l$.",
        ("tiled_attention", "masked, not skipped"): "In causal tiled attention you compute every tile, and mask it.",
        ("tiled_attention", "zeros past the end"): (
            "The last block of keys is short. You fill its scores up with zeros."
        ),
        ("tiled_attention", "masked with 0"): "In a tile on the diagonal you set the scores of later keys to 0.",
        ("tiled_attention", "masked after the maximum"): (
            "In a tile you take the maximum of each row, and then mask the later keys."
        ),
        ("tiled_attention", "the mask counts within the tile"): (
            "In each tile you keep a score where its column in the tile is at most its row in the tile."
        ),
        ("tiled_attention", "log l without m"): r"For the backward pass you store $\log l$ of each row.",
        ("row_in_blocks", "rescaled after adding"): (
            r"In each block you add its terms to $l$, and then multiply $l$ by $e^{m_\text{old} - m_\text{new}}$."
        ),
        ("flash_backward", "delta left out"): (
            r"On the way back you have $P$ and $dP = dO\,V^\top$. For the gradient of the scores you write $P \circ "
            "dP$."
        ),
        ("flash_backward", "softmax again"): (
            "The backward pass meets a block of keys. To get $P$ again you take the softmax of its scores."
        ),
        ("flash_backward", "lse taken for l"): (
            r"The log-sum-exp of each row is stored. To get $P$ again you divide $e^{\text{score}}$ by it."
        ),
        ("flash_backward", "the largest score in place of lse"): (
            r"To get $P$ again for the backward pass you compute $e^{\text{score} - m}$, with $m$ the largest score."
        ),
    },
    7: {
        ("block_allocator", "no copy on write"): (
            "Two sequences share a block that is half full. One writes its next token into the next slot of it."
        ),
        ("block_allocator", "shared blocks freed"): (
            "A sequence ends. You give all blocks of its table back to the pool, some of them shared."
        ),
        ("block_allocator", "one list for both"): (
            "A sequence is forked. The new name gets the table of the old one: the same list."
        ),
        ("block_allocator", "asks too soon"): "You refuse the next token of a sequence as soon as no block is free.",
        ("prefix_cache", "nothing left to compute"): (
            "All tokens of a prompt lie in the cache. You report that none has to be computed."
        ),
        ("prefix_cache", "duplicates freed"): (
            "Two requests computed the same text side by side. When the second is done you free its block, since the "
            "text is known."
        ),
        ("prefix_cache", "a block known by its own tokens"): (
            "You look up a full block of the cache by its tokens and its place in the prompt."
        ),
        (
            "prefix_cache",
            "half blocks shared",
        ): "A new prompt begins like an old one. You share the half full block too.",
        ("prefix_cache", "the beginning goes first"): (
            "Blocks of a released prompt are evicted from the beginning of its text to the end."
        ),
        ("prefix_cache", "first in, first out"): "When room is needed, the block that was filled first goes.",
        ("latencies", "TPOT from the arrival"): (
            "A request got $n$ tokens. For its TPOT you divide the time from arrival to its last token by $n$."
        ),
        ("latencies", "0 for one token"): "A request with a single token gets a TPOT of 0.",
        ("chunks", "in order alone"): "In a step with a budget, requests get their tokens in order of arrival alone.",
        ("scheduler", "who has generated decodes"): (
            "You take each request that has generated a token already for one that decodes."
        ),
        ("scheduler", "overtaking"): "The first request in the queue does not fit. You admit the one behind it.",
        ("scheduler", "never preempts"): "A request that decodes finds no free block. It waits until one comes back.",
        ("accept", "from p after a rejection"): (
            "A drafted token is rejected. In its place you draw one from $p$, the law of the large model."
        ),
        ("accept", "p alone"): "You keep a drafted token $x$ with probability $p(x)$.",
        ("accept", "on after a rejection"): (
            "Of four drafted tokens the second is rejected. You keep the third and the fourth if their coins say so."
        ),
        ("how_many", "all of them"): "A server with many requests verifies every token that was drafted.",
    },
}
