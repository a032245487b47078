"""One step of online softmax in Triton, for the kernel that day 6 shows, which has the loop around it."""

from course_utils.attention.triton_setup import tl, triton


@triton.jit
def take_in(m, l, o, s, v):
    """Update m, l and o with a tile of scores s (BLOCK_Q, BLOCK_K) and its values v (BLOCK_K, D_HEAD).

    m and l are (BLOCK_Q); o is (BLOCK_Q, D_HEAD), not yet divided by l.
    """
    m_new = tl.maximum(m, tl.max(s, 1))  # (BLOCK_Q)
    p = tl.exp(s - m_new[:, None])  # (BLOCK_Q, BLOCK_K)
    rescale = tl.exp(m - m_new)
    l = l * rescale + tl.sum(p, 1)
    o = o * rescale[:, None] + tl.dot(p, v, input_precision="ieee")
    return m_new, l, o
