"""Submissions that run for ever, end the process, flood, fill the memory or leave processes behind."""

from .entries import RIGHT_SCALE, Entry, in_answers


def _in_lookup(name, tries, body, status, needs=""):
    """An entry whose soft_lookup runs `body` in place of an answer."""
    lines = "".join(f"    {line}\n" for line in body.strip().split("\n"))
    source = f"def soft_lookup(query, keys, values, temperature):\n{lines}"
    return Entry(name, tries, in_answers({"soft_lookup": source}), {"soft_lookup": status}, needs=needs)


def _beside_scale(name, tries, source, needs=""):
    """An entry with a right scale_scores and `source` above it: it deserves all points and may leave nothing."""
    return Entry(name, tries, in_answers({"scale_scores": f"{source.strip()}\n{RIGHT_SCALE}"}), {}, needs=needs)


ENTRIES = [
    _in_lookup(
        "a loop that swallows interrupts",
        "outlives the time limit by catching everything that is raised",
        "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass",
        "timeout",
    ),
    _in_lookup(
        "a computation that holds the interpreter",
        "stays in one C call in which no signal is handled",
        "return 7 ** (7 ** 10)",
        "timeout",
    ),
    _in_lookup(
        "a process that stops itself",
        "is neither dead nor alive after SIGSTOP",
        "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
        "timeout",
    ),
    _in_lookup(
        "an exit without goodbye", "ends the kernel with status 0 by os._exit", "import os\nos._exit(0)", "killed"
    ),
    _in_lookup(
        "a kill from within",
        "ends the kernel with SIGKILL",
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        "killed",
    ),
    Entry(
        "an exit on day 5",
        "ends the kernel when its class is made, not when its cell runs",
        in_answers(
            {"ring_cache": "import os\nclass RingCache:\n    def __init__(self, *args):\n        os._exit(0)"}, 5
        ),
        {"ring_cache": "killed"},
        5,
    ),
    _in_lookup("a crash in C", "reads address 0", "import ctypes\nreturn ctypes.string_at(0)", "killed"),
    _in_lookup("a polite exit", "raises SystemExit in the check", "import sys\nsys.exit(0)", "error"),
    _in_lookup("a memory bomb at once", "asks for a tebibyte", "return bytearray(2**40)", "error"),
    _in_lookup(
        "a memory bomb step by step",
        "asks for 64 MiB at a time until there is no more",
        "held = []\nwhile True:\n    held.append(np.empty(2**23))",
        "error",
    ),
    _in_lookup(
        "recursion without end",
        "calls itself",
        "return soft_lookup(query, keys, values, temperature)",
        "error",
    ),
    _in_lookup(
        "a file without end",
        "writes far beyond the largest file allowed",
        'with open("large", "wb") as file:\n    file.seek(2**33)\n    file.write(b"x")\nreturn values[0]',
        "error",
    ),
    Entry(
        "a line without end",
        "has the page of feedback colour a keyword before 19,900 spaces",
        in_answers({"scores": "match" + " " * 19_900 + "0"}),
        {"scores": "error"},
    ),
    _in_lookup("a question to nobody", "asks for input()", 'return input("the answer? ")', "error"),
    _in_lookup(
        "a question with stdin forced open",
        "switches standard input on and waits for a reply",
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "InteractiveShell.instance().kernel._allow_stdin = True\n"
        'return input("the answer? ")',
        "timeout",
    ),
    _in_lookup(
        "50 MB in one print",
        "fills the grader's memory with one message",
        'global told\ntry:\n    told\nexcept NameError:\n    told = print("x" * 50_000_000)\nreturn values[0]',
        "killed",
    ),
    _in_lookup(
        "200 MB in 20,000 prints",
        "fills the grader's memory with many messages",
        'for _ in range(20_000):\n    print("x" * 10_000, flush=True)\nreturn values[0]',
        "killed",
    ),
    _in_lookup(
        "50 MB past Python",
        "writes to the file descriptor of standard output",
        'import os\nfor _ in range(800):\n    os.write(1, b"x" * 65_536)\nimport time\ntime.sleep(60)',
        "killed",
    ),
    _in_lookup(
        "20,000 displays",
        "fills the grader's memory with rich output, and clears it each time",
        "from IPython.display import clear_output, display\n"
        'for _ in range(20_000):\n    display({"text/plain": "x"}, raw=True)\n    clear_output()',
        "killed",
    ),
    _in_lookup(
        "a flood of comms",
        "opens widgets' channels without end",
        "import comm\nwhile True:\n    comm.create_comm(target_name='x' * 1000)",
        "killed",
    ),
    _in_lookup(
        "a fork bomb",
        "forks until it may not, and waits",
        "import ctypes, os, time\n"
        'ctypes.CDLL(None).prctl(15, b"@MARKER@", 0, 0, 0)\n'
        "for _ in range(7):\n"
        "    try:\n        os.fork()\n"
        "    except OSError:\n        pass\n"
        "time.sleep(987)",
        "timeout",
    ),
    _beside_scale(
        "a background process",
        "leaves a process in a session of its own",
        """
import subprocess
try:
    subprocess.Popen(["@MARKER@", "987"], executable="/bin/sleep", start_new_session=True)
except OSError:
    pass
""",
    ),
    _beside_scale(
        "a background process without environment",
        "leaves a process that nothing in its environment betrays",
        """
import subprocess
try:
    subprocess.Popen(["@MARKER@", "987"], executable="/bin/sleep", start_new_session=True, env={})
except OSError:
    pass
""",
        needs="processes",
    ),
    _beside_scale(
        "a daemon by the book",
        "forks twice, takes a session of its own and ignores every signal that can be ignored",
        """
import ctypes, os, signal, time
def daemon():
    os.setsid()
    ctypes.CDLL(None).prctl(15, b"@MARKER@", 0, 0, 0)
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    if os.fork() == 0:
        time.sleep(987)
    os._exit(0)
try:
    if os.fork() == 0:
        daemon()
except OSError:
    pass
""",
    ),
    _beside_scale(
        "a kernel that will not go",
        "ignores SIGTERM and hangs in atexit and in a thread",
        """
import atexit, signal, threading, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
atexit.register(time.sleep, 987)
threading.Thread(target=time.sleep, args=(987,)).start()
""",
    ),
    _beside_scale(
        "a lease on a shared file",
        "bars a file that other kernels open; where that works, its own answer fails",
        """
import course_utils.days.day1.given.ladders, fcntl, os
line = os.open(course_utils.days.day1.given.ladders.__file__, os.O_RDONLY)
try:
    fcntl.fcntl(line, fcntl.F_SETLEASE, fcntl.F_WRLCK)
except OSError:
    os.close(line)
else:
    raise SystemExit("it works")
""",
    ),
    _beside_scale(
        "a shot at the parent",
        "kills the process that started the kernel, and all of its group",
        """
import os, signal
for victim in (os.getppid(), -os.getpgid(os.getppid())):
    try:
        if victim not in (0, 1, -1):
            os.kill(victim, signal.SIGKILL)
    except OSError:
        pass
""",
        needs="processes",
    ),
    _beside_scale(
        "folders that cannot be deleted",
        "leaves folders 2,000 deep, and some without permissions",
        """
import os
home = os.getcwd()
os.makedirs("locked/inner")
try:
    os.chmod("locked", 0)
except PermissionError:
    pass
for _ in range(2000):
    os.mkdir("deeper")
    os.chdir("deeper")
os.chdir(home)
""",
    ),
]
