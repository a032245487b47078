"""Kernels of student code: what holds them at each level, that a fork is as good as a start, and that nothing stays."""

import contextlib
import os
import re
import subprocess
import sys
import time
import uuid
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from jupyter_client.manager import KernelManager
from needs import BUBBLEWRAP, LANDLOCK, LINUX

from course_utils import time_limits
from course_utils.answer_key.key import COURSE, reference_answers
from course_utils.answer_key.strip_answers import release_exercise
from course_utils.errors import CourseError, KernelLost, NotConfined
from course_utils.grading.grade import grade_notebook
from course_utils.grading.results import Settings
from course_utils.sandbox import confinement
from course_utils.sandbox.confinement import KernelServer, answers, open_kernels, readable
from course_utils.sandbox.grading_kernel import PROVISIONER, CourseKernelspecs, GradingKernel
from course_utils.sandbox.inside import forkserver
from course_utils.sandbox.limits import Limits, Start
from course_utils.sandbox.pipe import Talk

ROOT = Path(__file__).parents[2]
BEST = "bubblewrap" if not BUBBLEWRAP.args[0] else "landlock" if not LANDLOCK.args[0] else "limits"  # of this machine
OTHER = pytest.mark.thorough("a kernel confined in another way than this machine's best, or started cold")
pytestmark = LINUX


def ways(*names):
    """Ways to start kernels: a level, and without imports before the fork if cold."""
    needs = {"bubblewrap": [BUBBLEWRAP], "landlock": [LANDLOCK], "limits": []}
    return [pytest.param(name, marks=needs[name.split(",")[0]] + [OTHER] * (name != BEST)) for name in names]


SHUT = ways("bubblewrap", "landlock")


@pytest.fixture(scope="module")
def serve():
    """The server of kernels for a way to start them, each started once. The grader has a secret in its environment."""
    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as servers:
        patch.setenv("COURSE_SECRET_TOKEN", "s3cret")
        yield cache(lambda way: servers.enter_context(KernelServer(way.split(",")[0], warm=", cold" not in way)))


@pytest.fixture(scope="module", params=ways("bubblewrap", "bubblewrap, cold", "landlock", "limits"))
def server(request, serve):
    return serve(request.param)


@pytest.fixture(scope="module")
def confined(serve):
    """A server of kernels as far confined as this machine allows."""
    return serve(BEST)


@contextlib.contextmanager
def started(server, **limits):
    kernel = GradingKernel(Limits(**{"cell_seconds": 60, **limits}), 120, Start(server=str(server.folder)))
    try:
        kernel.wait_until_ready()
        yield kernel
    finally:
        kernel.stop()


def test_the_server_and_the_course_agree_how_long_a_request_may_take():
    assert forkserver.REQUEST_SECONDS == time_limits.REQUEST_SECONDS


def until(condition):
    """Wait for what must come, however busy the machine is."""
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def raised(kernel, code):
    """What a cell raised, as a line; an empty string if nothing."""
    return kernel.run(code) or ""


# A fork is as good as a start ---------------------------------------------------------------------------------------


def test_what_hangs_in_a_careless_fork_works(server):
    with started(server) as kernel:
        backward = (
            "import torch\nx = torch.ones(4, 4, requires_grad=True)\n(x @ x).sum().backward()\nassert x.grad[0, 0] == 8"
        )
        assert raised(kernel, backward) == ""
        parallel = "torch.set_num_threads(2)\na = torch.ones(600, 600)\nassert (a @ a)[0, 0] == 600"
        assert raised(kernel, parallel) == ""
        assert (
            raised(kernel, "import numpy as np\nassert (np.ones((300, 300)) @ np.ones((300, 300)))[0, 0] == 300") == ""
        )
        assert raised(kernel, "import threading\nt = threading.Thread(target=print)\nt.start()\nt.join(5)") == ""
        assert raised(kernel, "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()") == ""
        assert raised(kernel, "import signal\nassert signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL") == ""


def test_two_kernels_draw_other_numbers(confined):
    drawn = []
    for _ in range(2):
        with started(confined) as kernel:
            tell = "import random, numpy, torch\n"
            tell += "raise Exception(f'{random.random()} {numpy.random.rand()} {torch.rand(1).item()}')"
            drawn.append(raised(kernel, tell).split()[1:])
    assert len(set(drawn[0] + drawn[1])) == 6


def test_the_server_has_imported_and_runs_one_thread(confined):
    with started(confined) as kernel:
        assert raised(kernel, "import sys\nassert {'torch', 'numpy', 'matplotlib.pyplot'} <= set(sys.modules)") == ""


def test_a_module_that_starts_a_thread_is_not_forked(tmp_path, monkeypatch):
    thread = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    write = confinement.write_kernel_library

    def with_thread(folder):
        write(folder)
        (folder / "busy.py").write_text(thread)

    monkeypatch.setattr(confinement, "write_kernel_library", with_thread)
    monkeypatch.setattr(confinement, "MODULES", ("busy",))
    with pytest.raises(NotConfined, match="2 threads run"):
        KernelServer("limits")


# What holds ---------------------------------------------------------------------------------------------------------

REFUSED = {
    "a program": "import subprocess\nsubprocess.run(['true'])",
    "a shell": "import os\nassert os.system('true') == 0, 'PermissionError'",
    "a fork": "import os\nos.fork()",
    "a process": "import multiprocessing\nmultiprocessing.get_context('fork').Process(target=print).start()",
    "a network socket": "import socket\nsocket.socket()",
    "a local socket": "import socket\nsocket.socket(socket.AF_UNIX)",
    "a signal to its parent": "import os\nos.kill(os.getppid() or 1, 9)",
    "a signal to all": "import os\nos.kill(-1, 9)",
    "memory without a name": "import os\nos.memfd_create('x')",
    "another process's limits": "import resource, os\nresource.prlimit(os.getppid() or 1, resource.RLIMIT_CPU, (1, 1))",
    "a lease": "import fcntl\nopen('own', 'w').close()\nfcntl.fcntl(open('own'), fcntl.F_SETLEASE, fcntl.F_WRLCK)",
    "tracing": "import ctypes, os\nc = ctypes.CDLL(None, use_errno=True)\n"
    "assert c.ptrace(16, os.getppid() or 1, 0, 0) == 0, f'PermissionError {ctypes.get_errno()}'",
    "new namespaces": "import ctypes\nassert ctypes.CDLL(None).unshare(0x10000000) == 0, 'PermissionError'",
}


@pytest.fixture(scope="module")
def held(server):
    """One kernel for all that is refused: what follows a refusal must be refused too."""
    with started(server) as kernel:
        yield kernel


@pytest.mark.parametrize("what", REFUSED)
def test_student_code_is_refused(held, what):
    assert "PermissionError" in raised(held, REFUSED[what])


def test_every_refusal_at_once_leaves_a_kernel_that_works(confined):
    with started(confined) as kernel:
        for code in REFUSED.values():
            raised(kernel, code)
        assert raised(kernel, "assert 1 + 1 == 2") == ""


@pytest.mark.parametrize("way", SHUT)
def test_a_confined_kernel_sees_none_of_the_graders_files(way, serve, tmp_path):
    (tmp_path / "other.ipynb").write_text("{}")
    server = serve(way)
    with started(server) as kernel, started(server) as neighbour:
        box = Path(neighbour.km.connection_file).parent
        files = [ROOT / "solutions" / "day1_attention_by_hand.ipynb", ROOT / "course_utils" / "__init__.py"]
        files += [tmp_path / "other.ipynb", box / "c", server.folder / "log", server.folder / "settings.json"]
        for path in files:
            assert path.exists()
            assert re.match("FileNotFound|Permission|NotADirectory", raised(kernel, f"open({str(path)!r}).read()")), (
                path
            )
        for folder in (ROOT, ROOT / "solutions", tmp_path, server.folder, Path("/proc/1/cwd/solutions")):
            listing = (
                f"import os\nfound = os.listdir({str(folder)!r})\nassert set(found) <= {{'.venv', 'scratch'}}, found"
            )
            assert "AssertionError" not in raised(kernel, listing), folder


IN_PROC = """
import os, re
found = b""
for place, folders, names in os.walk("/proc"):
    folders[:] = [name for name in folders if name not in ("task", "fd", "map_files", "net", "ns", "attr")]
    for name in names:
        try:
            with open(os.path.join(place, name), "rb") as file:
                found += file.read(2**20)
        except OSError:
            pass
others = []
for number in {*range(1, 3000), *PIDS} - {int(os.path.basename(os.path.realpath("/proc/self")).strip("self") or 0)}:
    try:
        others.append(open(f"/proc/{number}/cmdline", "rb").read())
    except OSError:
        pass
"""


@pytest.mark.parametrize("way", SHUT)
def test_no_process_but_the_kernels_own_is_in_proc_and_no_name_or_answer(way, serve):
    server = serve(way)
    secret = "zoe-" + uuid.uuid4().hex
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", secret])
    try:
        with started(server) as kernel, started(server):
            pids = [os.getpid(), other.pid, server.process.pid, *range(other.pid, other.pid + 50)]
            assert raised(kernel, IN_PROC.replace("PIDS", str(pids))) == ""
            assert raised(kernel, "assert others == [], others") == ""
            assert raised(kernel, "assert b'-m\\0inside' in open('/proc/self/cmdline', 'rb').read()") == ""
            assert raised(kernel, f"assert b{secret[::-1]!r}[::-1] not in found") == ""
            source = "open('/proc/self/environ', 'rb').read() + open('/proc/self/cmdline', 'rb').read()"
            assert raised(kernel, f"assert not re.search(b'solutions|keys.json|student/|[.]ipynb', {source})") == ""
    finally:
        other.kill()
        other.wait()


@BUBBLEWRAP
def test_a_confined_kernel_writes_in_its_scratch_only(confined):
    with started(confined) as kernel:
        assert raised(kernel, "open('mine', 'w').write('x')\nimport tempfile\ntempfile.mkstemp()") == ""
        box = str(Path(kernel.km.connection_file).parent)
        for place in (
            "/",
            "/tmp",
            "/usr",
            "/course",
            "/dev",
            "/mnt",
            box,
            str(Path(sys.prefix)),
            os.path.expanduser("~"),
        ):
            assert "Error" in raised(kernel, f"open({place + '/written'!r}, 'w')"), place
        assert list(Path(box).glob("*written*")) == []
        assert "large" in raised(kernel, "with open('big', 'wb') as f:\n    f.write(bytes(2**25))")
        assert "No space" in raised(kernel, "for i in range(40):\n    open(f'{i}', 'wb').write(bytes(2**23))")


@pytest.mark.parametrize("way", [*ways("landlock"), "limits, cold"])
def test_scratch_has_a_limit_where_it_is_on_the_disk(way, serve):
    fill = "import time\nfor i in range(8):\n    open(f'{i}', 'wb').write(bytes(2**23))\ntime.sleep(99)"
    with (
        started(serve(way), scratch_bytes=2**25) as kernel,
        pytest.raises(KernelLost, match="wrote more than 32 MiB"),
    ):
        kernel.run(fill)


@pytest.mark.parametrize("way", SHUT)
def test_the_environment_holds_nothing_of_the_graders(way, serve):
    assert os.environ["COURSE_SECRET_TOKEN"] == "s3cret"
    with started(serve(way)) as kernel:
        assert raised(kernel, "import os\nassert 's3cret' not in str(os.environ)") == ""


def test_no_capabilities_and_no_new_privileges_are_left(server):
    with started(server) as kernel:
        status = "dict(line.split(':\\t', 1) for line in open('/proc/self/status') if ':\\t' in line)"
        assert (
            raised(kernel, f"s = {status}\nassert s['NoNewPrivs'].strip() == '1' and s['Seccomp'].strip() == '2', s")
            == ""
        )
        assert raised(kernel, "assert int(s['CapEff'], 16) == int(s['CapPrm'], 16) == 0") == ""


MEMORY = {
    "arrays": "import numpy\nkept = [numpy.empty(2**24) for _ in range(40)]",
    "shared": "import mmap\nkept = [mmap.mmap(-1, 2**30) for _ in range(40)]",
    "threads": "import threading\nwait = threading.Event()\n"
    "for _ in range(10_000):\n    threading.Thread(target=wait.wait, daemon=True).start()",
}


@pytest.mark.parametrize("what", MEMORY)
def test_memory_has_a_limit(confined, what):
    with started(confined, memory_bytes=2**31) as kernel:
        try:
            assert "Error" in raised(kernel, MEMORY[what])
        except KernelLost as lost:
            assert lost.status == "killed"


def test_processor_time_has_a_limit(confined):
    with started(confined, cpu_seconds=1) as kernel, pytest.raises(KernelLost, match="ended"):
        kernel.run("while True:\n    pass")


# Nothing stays ------------------------------------------------------------------------------------------------------


def test_a_stopped_kernel_leaves_no_file_and_no_process(server):
    before = _processes_in(server)
    with started(server) as kernel:
        assert raised(kernel, "import os\nos.makedirs('a' * 200)\nopen('x', 'w').write('x')") == ""
        assert raised(kernel, "import threading, time\nthreading.Thread(target=time.sleep, args=(99,)).start()") == ""
        box = Path(kernel.km.connection_file).parent
        assert _processes_in(server) > before
    assert not box.exists()
    assert _processes_in(server) <= before


def test_a_server_that_ends_takes_its_kernels_and_its_folder_along():
    server = open_kernels("best", warm=False)
    with started(server):
        inside = _processes_in(server)
        server.close()
        assert not server.folder.exists() and not server.alive
        until(lambda: not any(map(_runs, inside)))


def test_a_grader_that_is_killed_leaves_no_server():
    code = (
        "import time\nfrom course_utils.sandbox.confinement import open_kernels\n"
        "server = open_kernels(warm=False)\nprint(server.process.pid, server.folder, flush=True)\ntime.sleep(99)"
    )
    grader = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    process, folder = grader.stdout.readline().split()
    grader.kill()
    grader.wait()
    grader.stdout.close()
    until(lambda: not _runs(process))
    assert not Path(folder).exists() or not list(Path(folder).iterdir())


def test_a_kernel_ends_when_the_one_who_asked_for_it_does(confined):
    before = _processes_in(confined)
    kernel = GradingKernel(Limits(), 60, Start(server=str(confined.folder)))
    kernel.wait_until_ready()
    kernel.km.provisioner.connection.close()
    until(lambda: _processes_in(confined) <= before)
    kernel.km.provisioner.connection = None
    kernel.stop()


@pytest.mark.parametrize("after", [Talk.__init__, GradingKernel._connect])
def test_a_kernel_that_cannot_be_spoken_to_is_stopped(after, confined, monkeypatch):
    def too_many_files(*arguments):
        after(*arguments)
        raise OSError("Too many open files")

    scratch = confined.folder / "scratch"
    processes = _processes_in(confined)
    folders = set(scratch.iterdir())
    monkeypatch.setattr(Talk if after is Talk.__init__ else GradingKernel, after.__name__, too_many_files)
    with pytest.raises(OSError, match="Too many open files"):
        GradingKernel(Limits(), 60, Start(server=str(confined.folder)))
    until(lambda: _processes_in(confined) <= processes and set(scratch.iterdir()) <= folders)


# What there is, and what there is not -------------------------------------------------------------------------------


@LANDLOCK
def test_without_bubblewrap_landlock_serves_and_the_report_says_so(monkeypatch):
    monkeypatch.setattr(confinement.shutil, "which", lambda name: None)
    with open_kernels("best", warm=False) as server:
        assert server.level == "landlock"
        assert "Landlock" in str(server.confinement) and "bubblewrap is not installed" in str(server.confinement)
        assert not server.confinement.full
    with pytest.raises(NotConfined, match="bubblewrap is not installed"):
        open_kernels("full")


def test_without_either_the_report_says_what_stays_open(monkeypatch):
    monkeypatch.setattr(confinement.shutil, "which", lambda name: None)
    monkeypatch.setattr(confinement, "landlock_version", lambda: 0)
    with open_kernels("best", warm=False) as server:
        assert server.level == "limits"
        assert "What stays open: it can read and write the files that you can" in str(server.confinement)


@BUBBLEWRAP
def test_full_confinement_is_what_this_machine_gives():
    with open_kernels("full", warm=False) as server:
        assert server.confinement.full and "stays open" not in str(server.confinement)


def test_an_unknown_level_is_refused_in_words():
    with pytest.raises(CourseError, match="'most' is not one of best, full, bubblewrap, landlock, limits"):
        open_kernels("most")


def test_no_path_that_landlock_allows_leads_to_answers():
    allowed = [Path(path).resolve() for path in readable(Path("/nowhere"))]
    for hidden in answers():
        assert not any(hidden.is_relative_to(path) for path in allowed)
    assert any(
        Path(sys.prefix, "lib").resolve().is_relative_to(path) or path.is_relative_to(sys.prefix) for path in allowed
    )


def test_a_package_installed_beside_the_others_is_hidden(monkeypatch, tmp_path):
    site = tmp_path / "env" / "lib" / "site-packages"
    for name in ("course_utils", "numpy", "torch"):
        (site / name).mkdir(parents=True)
    monkeypatch.setattr(confinement, "pythons", lambda: [tmp_path / "env"])
    monkeypatch.setattr(confinement, "ROOT", site)
    monkeypatch.setattr(confinement.course_utils, "__file__", str(site / "course_utils" / "__init__.py"))
    assert answers() == [site / "course_utils"]
    allowed = readable(tmp_path)
    assert str(site / "numpy") in allowed and str(site) not in allowed and str(site / "course_utils") not in allowed
    words = confinement.bubblewrap(tmp_path)
    assert words[words.index(str(site / "course_utils")) - 1] == "--tmpfs"
    assert words.index(str(site / "course_utils")) > words.index(str(tmp_path / "env"))


def test_the_provisioner_serves_jupyter_without_more_ado(confined):
    manager = KernelManager(
        kernel_name="course", kernel_spec_manager=CourseKernelspecs({"server": str(confined.folder)})
    )
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(60)
    at_home = "import os\nassert os.getcwd() == os.environ['HOME'] and os.path.basename(os.getcwd()) == 'home'"
    assert client.execute_interactive(at_home)["content"]["status"] == "ok"
    client.stop_channels()
    manager.shutdown_kernel()
    assert not manager.is_alive()


def test_the_provisioner_is_one_of_jupyters_entry_points():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert PROVISIONER in project["entry-points"]["jupyter_client.kernel_provisioners"]


def test_where_the_warm_process_is_gone_a_cold_kernel_grades(tmp_path):
    server = open_kernels("best", warm=False)
    server.process.kill()
    server.process.wait()
    notebook = release_exercise(COURSE.notebook(1))
    (cell,) = (each for each in notebook.cells if each.metadata.get("nbgrader", {}).get("grade_id") == "scale_scores")
    cell.source = reference_answers(COURSE.notebook(1))["scale_scores"]
    nbformat.write(notebook, tmp_path / "day1_ada.ipynb")
    graded = grade_notebook(tmp_path / "day1_ada.ipynb", settings=Settings(start=Start(server=str(server.folder))))
    server.close()
    assert graded.score == 1


def _runs(process):
    """Whether a process is there and no zombie."""
    with contextlib.suppress(OSError):
        return "zombie" not in Path(f"/proc/{process}/status").read_text()
    return False


def _processes_in(server):
    """The processes of a server, itself included, as the system shows them outside."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError, ValueError):
            lines = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
            if "Z" not in lines["State"]:
                parents[int(lines["Pid"])] = int(lines["PPid"])
    processes = {server.process.pid}
    while more := {child for child, parent in parents.items() if parent in processes} - processes:
        processes |= more
    return processes - _wrappers(processes)


def _wrappers(processes):
    """Those among them that only wait: bubblewrap's own."""
    names = {}
    for process in processes:
        with contextlib.suppress(OSError):
            names[process] = Path(f"/proc/{process}/comm").read_text().strip()
    return {process for process, name in names.items() if name == "bwrap"}


def test_a_kernel_that_swallows_interrupts_is_ended_when_its_time_is_up(confined):
    swallow = "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass"
    with started(confined, cell_seconds=1) as kernel, pytest.raises(KernelLost, match="worked for more than 1 s"):
        kernel.run(swallow)


# A cell that asks its grader ------------------------------------------------------------------------------------------

ASK = """
import time
from pathlib import Path
folder = Path(get_ipython().kernel.parent.connection_file).parent
asked, told = open(folder / "asked", "wb", buffering=0), open(folder / "told", "rb")
def ask(question):
    asked.write(question + b"\\n")
    return told.readline()
"""


def test_while_a_question_is_open_no_clock_runs(server, monkeypatch):
    late = 0.0

    def answer(question):
        nonlocal late
        late += 100  # seconds that the judge works, or waits for its turn
        return question.upper()

    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + late, sleep=time.sleep)
    monkeypatch.setattr("course_utils.sandbox.grading_kernel.time", clock)
    with started(server) as kernel:
        kernel.allow_questions(answer, 10)
        assert raised(kernel, ASK + "assert [ask(b'a') for _ in range(10)] == [b'A\\n'] * 10") == ""


@pytest.mark.parametrize("asks", ["", ASK + "ask(b'a')"], ids=["", "after a question"])
def test_a_cell_may_not_sleep_for_long(asks, server):
    with started(server, idle_seconds=0.3) as kernel, pytest.raises(KernelLost, match=r"waited for more than 0.3 s"):
        kernel.allow_questions(str.upper, 10)
        kernel.run(f"{asks}\nimport time\ntime.sleep(600)")


def test_a_kernel_that_asks_shares_a_processor_with_its_grader_until_it_ends(server):
    mine = os.sched_getaffinity(0)
    with started(server) as kernel:
        kernel.allow_questions(str.upper, 60)
        (shared,) = os.sched_getaffinity(0)
        soon = f"import os, time\nwhile os.sched_getaffinity(0) != {{{shared}}}:\n    time.sleep(0.01)"
        assert raised(kernel, soon) == ""  # the server of kernels hears of it at its next turn
    assert os.sched_getaffinity(0) == mine
