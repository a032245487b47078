"""Kernels in which student code runs, and the walls around them. To audit it, read in this order.

    confinement.py   what a kernel may see, at three levels: bubblewrap, Landlock, limits alone; the server's start
    inside/          all that runs beside student code; it is copied whole, with the checks' inputs, and nothing else is
        forkserver.py  the process that kernels are forked from
        start.py       from a fork to a kernel, step by step, and the order in which doors are closed
        namespaces.py  users, mounts and processes of its own, inside bubblewrap
        landlock.py    which files may be opened, where there is no bubblewrap
        seccomp.py     which system calls are refused
        rlimits.py     memory, processor time, files
        system.py      the calls of the C library that these need
    provisioner.py   asks the server for kernels, on Jupyter's behalf
    kernel.py        what a kernel says is read here: capped, timed, and seen at once when it dies
    limits.py        every limit and its default
    log.py           what each kernel was asked and how it ended, on request

What each rule is for stands beside it, with the entry of `tests/hostile` that tries it.
"""
