"""Kernels in which student code runs, and the walls around them. To audit the sandbox, read in this order:

    confinement.py   what a kernel may see at each level (bubblewrap, Landlock, limits alone); starts the server
    inside/          all code that runs beside student code; only this and the checks' inputs are copied there
        forkserver.py  the process that kernels are forked from
        start.py       turns a fork into a kernel, and closes its doors in the right order
        namespaces.py  gives a kernel its own users, mounts and processes, inside bubblewrap
        landlock.py    restricts the files that a kernel may open, where there is no bubblewrap
        seccomp.py     refuses system calls
        rlimits.py     limits memory, processor time and files
        system.py      the C library calls that these modules need
    provisioner.py   asks the server for kernels, on Jupyter's behalf
    grading_kernel.py  reads what a kernel says, caps and times it, and notices at once when it dies
    pipe.py          answers the questions that a kernel asks while a cell runs
    limits.py        every limit and its default
    log.py           records on request what each kernel was asked and how it ended

A comment beside each rule says what it is for, and names the entry of `tests/hostile` that tries to break it.
"""
