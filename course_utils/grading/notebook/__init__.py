"""Grade one notebook: `plugin.py` runs its cells with nbval, `attempts.py` tries the answer to an exercise and judges
it, and `notebook_kernels.py` has the kernels that answers run in."""
