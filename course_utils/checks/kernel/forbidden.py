"""Library calls that exercises forbid because they would do the whole job: a part of each name, with the reason."""

WHOLE_ATTENTION = dict.fromkeys(
    (
        "scaled_dot_product",
        "flash_attention",
        "efficient_attention",
        "flex_attention",
        "multihead",
        "multi_head",
        "transformer",
    ),
    "it is the whole of attention in one call",
)
LIBRARY_SOFTMAX = WHOLE_ATTENTION | dict.fromkeys(
    ("softmax", "softmin", "logsumexp", "logcumsumexp"), "it is the softmax that you are asked to write"
)
STABLE_SOFTMAX = LIBRARY_SOFTMAX | {"logaddexp": "it holds the max-shift that you are asked to write"}
LIBRARY_LOGSUMEXP = {
    "logsumexp": "it is the log-sum-exp that you are asked to write",
    "logcumsumexp": "its last entry is the log-sum-exp that you are asked to write",
    "logaddexp": "reduced over an axis it is the log-sum-exp that you are asked to write",
    "log_softmax": "it holds the log-sum-exp that you are asked to write",
}
LIBRARY_CROSS_ENTROPY = LIBRARY_LOGSUMEXP | dict.fromkeys(
    ("cross_entropy", "nll_loss"), "it is the loss that you are asked to write"
)
AUTOGRAD = dict.fromkeys(
    ("autograd", "backward", "vjp", "jvp", "jacrev", "jacfwd", "hessian", "make_dual"),
    "the gradients are to be worked out by hand, not by autograd",
)
