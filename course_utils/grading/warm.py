"""The process that kernels are forked from: it imports what every notebook imports, and only imports.

usage: python warm.py FOLDER LEVEL [MODULE...]

It stands alone, since it runs where no answer of the course can be read. It listens at FOLDER/server.sock, one
connection a kernel: the request comes as a line of JSON, {"started": pid} goes back, {"exit": status} follows in the
end. A line {"signal": number} is passed on to the kernel. {"spent": number} is answered with that number and the
seconds that the kernel worked and waited for its turn. A connection that closes ends its kernel, and when standard
input closes, the server ends with all its kernels.

LEVEL says how a kernel is confined. bubblewrap: this process already runs in a sandbox of bubblewrap's, and each kernel
gets namespaces of its own inside it. landlock: the kernel restricts itself to the folders of the request. limits:
neither. System calls are filtered and resources limited at every level, where the system can.
"""

import contextlib
import ctypes
import gc
import importlib
import json
import os
import platform
import random
import resource
import selectors
import shutil
import signal
import socket
import struct
import sys
import time
import traceback

LIBC = ctypes.CDLL(None, use_errno=True)
KERNEL_MODULES = (  # what a kernel loads at its start and at its first cell
    "ipykernel.kernelapp",
    "ipykernel.ipkernel",
    "ipykernel.zmqshell",
    "ipykernel.debugger",
    "IPython.core.completer",
    "IPython.core.completerlib",
    "IPython.core.debugger",
    "IPython.core.oinspect",
    "IPython.extensions.storemagic",
    "matplotlib_inline.backend_inline",
)
GIB = 2**30
COMPLAINTS = 3  # where a kernel that cannot start says why: the server's log


def main(folder: str, level: str, modules: list[str]) -> None:
    """Try the confinement, import, tell {"ready": true} or {"failed": why} on standard output, and serve."""
    told = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        _try(level)
        _import(modules)
        _verify_one_thread()
    except Exception as error:
        print(json.dumps({"failed": f"{type(error).__name__}: {error}"}), file=told, flush=True)
        return
    _set_dumpable(0)  # no other process of this user may look into the server
    server = Server(folder, level, warm=bool(modules))
    print(json.dumps({"ready": True, "filter": _filter_known()}), file=told, flush=True)
    told.close()
    server.serve()
    os._exit(0)  # nothing is left to tidy, and to take all modules down takes a while


def _import(modules: list[str]) -> None:
    """Import what kernels use, and keep it out of the way of their garbage collections, which would copy it."""
    sys.modules["debugpy"] = None  # nobody debugs a student's kernel
    # An editable installation of the course would lend its answers to whoever imports them.
    sys.meta_path[:] = [each for each in sys.meta_path if "course_utils" not in getattr(each, "__module__", "")]
    gc.disable()  # imports leave next to no garbage: to look for it takes a third of their time
    for name in (*KERNEL_MODULES, *modules):
        importlib.import_module(name)
    gc.freeze()
    gc.enable()


class Server:
    """Forks a kernel for each connection, and keeps track of both."""

    def __init__(self, folder: str, level: str, warm: bool):
        self.folder, self.level, self.warm = folder, level, warm
        self.kernels: dict[int, socket.socket] = {}
        self.inside: dict[int, int] = {}  # from what was forked here to the kernel itself
        self.selector = selectors.DefaultSelector()
        self.listener = socket.socket(socket.AF_UNIX)
        path = os.path.join(folder, "server.sock")
        self.listener.bind(path + ".new")
        self.listener.listen(64)
        os.rename(path + ".new", path)
        self.wake, woken = socket.socketpair()
        for end in (self.wake, woken):
            end.setblocking(False)
        signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.woken = woken

    def serve(self) -> None:
        """Until standard input closes."""
        lifeline = os.fdopen(0, "rb", buffering=0)
        for source in (lifeline, self.listener, self.wake):
            self.selector.register(source, selectors.EVENT_READ)
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is lifeline:
                    return self.end()
                if key.fileobj is self.listener:
                    self.accept()
                elif key.fileobj is self.wake:
                    with contextlib.suppress(BlockingIOError):
                        self.wake.recv(4096)
                else:
                    self.hear(key.fileobj, key.data)
            self.reap()

    def accept(self) -> None:
        connection, _ = self.listener.accept()
        connection.settimeout(10)
        try:
            line = b""
            while not line.endswith(b"\n"):
                part = connection.recv(65536)
                if not part:
                    return connection.close()
                line += part
            process = self.fork(json.loads(line))
            connection.sendall(json.dumps({"started": process}).encode() + b"\n")
        except (OSError, ValueError):
            return connection.close()
        connection.setblocking(False)
        self.kernels[process] = connection
        self.selector.register(connection, selectors.EVENT_READ, process)

    def fork(self, request: dict) -> int:
        _verify_one_thread()
        process = os.fork()
        if process:
            return process
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            become_kernel(request, self.level, self.warm)
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 0
        except BaseException:
            with contextlib.suppress(OSError):
                os.write(COMPLAINTS, traceback.format_exc().encode())
        os._exit(status)

    def hear(self, connection: socket.socket, process: int) -> None:
        """A signal for a kernel, or the end of the one who wanted it."""
        try:
            data = connection.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.selector.unregister(connection)
            connection.close()
            self.stop(process)
            return
        for line in data.splitlines():
            asked = json.loads(line)
            if "spent" in asked:
                said = {"spent": self.spent(process), "asked": asked["spent"]}
                with contextlib.suppress(OSError):  # whoever asked is gone, or does not listen
                    connection.sendall(json.dumps(said).encode() + b"\n")
            elif asked["signal"] in (signal.SIGKILL, signal.SIGTERM):
                self.stop(process)
            else:
                os.kill(process, asked["signal"])

    def spent(self, process: int) -> tuple[float, float] | None:
        """Seconds of processor time that a kernel has used, and for how long its first thread was ready to run and the
        machine had no turn for it. None where the system does not say."""
        if self.level != "bubblewrap":
            return spent_by(process)
        if process not in self.inside:
            family = descendants(process)
            if len(family) < 2:  # it is only on its way
                return None
            self.inside[process] = family[-1]
        return spent_by(self.inside[process])

    def stop(self, process: int) -> None:
        """End a kernel: the keeper of one in namespaces ends all that is in them, and then itself."""
        with contextlib.suppress(ProcessLookupError):
            if self.level == "bubblewrap":
                os.kill(process, signal.SIGTERM)
            else:
                os.killpg(process, signal.SIGKILL)

    def reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                process, status = os.waitpid(-1, os.WNOHANG)
                if not process:
                    return
                with contextlib.suppress(OSError):
                    os.killpg(process, signal.SIGKILL)
                self.inside.pop(process, None)
                connection = self.kernels.pop(process, None)
                if connection is None or connection.fileno() < 0:
                    continue
                self.selector.unregister(connection)
                with contextlib.suppress(OSError):
                    connection.sendall(json.dumps({"exit": os.waitstatus_to_exitcode(status)}).encode() + b"\n")
                connection.close()

    def end(self) -> None:
        for process in self.kernels:
            self.stop(process)
        for process in self.kernels:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process, 0)
        shutil.rmtree(self.folder, ignore_errors=True)  # whoever made it may be gone


def descendants(process: int) -> list[int]:
    """The child of a process, its child, and so on, where each has one: of a keeper the first inside, the kernel."""
    children, family = {}, []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError), open(f"/proc/{int(name)}/stat") as stat:
            children[int(stat.read().rpartition(")")[2].split()[1])] = int(name)
    while process in children:
        process = children[process]
        family.append(process)
    return family


def spent_by(process: int) -> tuple[float, float] | None:
    """What `Server.spent` says, of one process: all its threads, also those that have ended, count as work."""
    try:
        with open(f"/proc/{process}/schedstat") as schedule:
            waited = int(schedule.read().split()[1]) / 1e9
        return time.clock_gettime(~process << 3 | 2), waited  # the kernel's number for "the processor time of"
    except (OSError, ValueError, IndexError, AttributeError):
        return None


def become_kernel(request: dict, level: str, warm: bool) -> None:
    """Confine this process as the request says and run a kernel in it until it ends.

    request: "box", the kernel's own folder, with the connection file in it; "argv" of the kernel; "env"; "limits";
    "read", the paths that it may read under Landlock.
    """
    os.setsid()
    _die_with_parent()
    _set_dumpable(1)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(2, COMPLAINTS)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    os.closerange(COMPLAINTS + 1, 4096)
    box, home, bound = request["box"], os.path.join(request["box"], "home"), lambda: None
    if level == "bubblewrap":
        home, bound = f"{SCRATCH}/home", enter_namespaces(box)
    os.makedirs(home, exist_ok=True)
    os.environ.clear()
    os.environ.update(request["env"] | {"HOME": home, "TMPDIR": home})
    os.chdir(home)
    if level == "landlock":
        restrict_paths(request["read"], [box])
    set_limits(request["limits"], warm, level)
    no_new_privileges()
    _drop_capabilities()
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.seed()
    from ipykernel.kernelapp import IPKernelApp

    sys.argv = request["argv"]
    app = IPKernelApp.instance()
    app.initialize(request["argv"][1:])
    bound()
    filter_calls()
    os.close(COMPLAINTS)
    app.start()


# Namespaces ---------------------------------------------------------------------------------------------------------

NEW_MOUNTS, NEW_IPC, NEW_USERS, NEW_PROCESSES = 0x20000, 0x8000000, 0x10000000, 0x20000000
READ_ONLY, NO_SETUID, NO_DEVICES, NO_PROGRAMS = 1, 2, 4, 8
REMOUNT, BIND, RECURSIVE, PRIVATE = 0x20, 0x1000, 0x4000, 0x40000
ASIDE, SCRATCH = "/mnt", "/scratch"  # empty folders of the sandbox
ABOUT_THE_MACHINE = ("cpuinfo", "meminfo", "stat")  # files of /proc that libraries read


def enter_namespaces(box: str):
    """Go on in a process with its own users, mounts and processes, in which only `box` of the shared folder is left.

    Three processes come of it: the keeper, outside, which ends the first one inside when it gets SIGTERM; that one,
    which ends when the kernel does, and with it all that the kernel started; and the kernel, where this returns.
    Returns a function to call once the kernel's sockets are there: from then on `box` cannot be written to.
    """
    _unshare()
    _mount_box(box)
    first = os.fork()
    if first:
        signal.signal(signal.SIGTERM, lambda *_: os.kill(first, signal.SIGKILL))
        os._exit(os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]) & 255)
    _die_with_parent()
    (heard, ready), (go, granted) = os.pipe(), os.pipe()
    kernel = os.fork()
    if kernel:
        os.close(ready)
        if os.read(heard, 1):
            _mount(None, box, None, REMOUNT | BIND | READ_ONLY | NO_SETUID | NO_DEVICES)
            os.write(granted, b"!")
        while True:
            process, status = os.wait()
            if process == kernel:
                os._exit(os.waitstatus_to_exitcode(status) & 255)
    os.close(heard)
    os.close(granted)
    os.setsid()
    _hide_processes()

    def bound() -> None:
        os.write(ready, b"!")
        if not os.read(go, 1):
            raise OSError("the kernel's folder could not be closed")
        os.close(ready)
        os.close(go)

    return bound


def _unshare() -> None:
    """Namespaces of this process's own, in which the user keeps the number they have."""
    user, group = os.getuid(), os.getgid()
    _call(LIBC.unshare(NEW_USERS | NEW_MOUNTS | NEW_PROCESSES | NEW_IPC), "unshare")
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")


def _mount_box(box: str) -> None:
    _mount(None, "/", None, RECURSIVE | PRIVATE)
    _mount(box, ASIDE, None, BIND)
    shared = os.path.dirname(os.path.dirname(box))
    _mount("tmpfs", shared, "tmpfs", NO_SETUID | NO_DEVICES, "size=1m")
    _mount("tmpfs", SCRATCH, "tmpfs", NO_SETUID | NO_DEVICES, "size=256m,mode=1777")
    _mount(None, "/tmp", None, REMOUNT | BIND | READ_ONLY | NO_SETUID | NO_DEVICES)
    _mount("tmpfs", "/dev/shm", "tmpfs", NO_SETUID | NO_DEVICES, "size=64m,mode=1777")
    os.makedirs(box, exist_ok=True)
    _mount(ASIDE, box, None, BIND)
    _call(LIBC.umount2(ASIDE.encode(), 2), "umount")
    _mount("tmpfs", "/dev/pts", "tmpfs", NO_SETUID | NO_DEVICES, "size=4k")
    _mount(None, "/proc", None, REMOUNT | BIND | READ_ONLY | NO_SETUID | NO_DEVICES | NO_PROGRAMS)
    _mount(None, "/dev", None, REMOUNT | BIND | READ_ONLY | NO_SETUID | NO_DEVICES)


def _hide_processes() -> None:
    """Leave of /proc this process and what libraries read of the machine: no other process and no command line.

    The /proc of the sandbox shows all in it, its command lines too, and the system allows no new one inside.
    """
    _mount("tmpfs", ASIDE, "tmpfs", NO_SETUID | NO_DEVICES | NO_PROGRAMS, "size=64k,mode=755")
    os.mkdir(f"{ASIDE}/self")
    _mount(f"/proc/{os.readlink('/proc/self')}", f"{ASIDE}/self", None, BIND)
    for name in ABOUT_THE_MACHINE:
        _write(f"{ASIDE}/{name}", "")
        _mount(f"/proc/{name}", f"{ASIDE}/{name}", None, BIND)
    _mount(None, ASIDE, None, REMOUNT | BIND | READ_ONLY | NO_SETUID | NO_DEVICES | NO_PROGRAMS)
    _mount(ASIDE, "/proc", None, BIND | RECURSIVE)
    _call(LIBC.umount2(ASIDE.encode(), 2), "umount")


def _mount(source, target, kind, flags, data=None) -> None:
    encoded = [part and part.encode() for part in (source, target, kind)]
    _call(LIBC.mount(*encoded, ctypes.c_ulong(flags), data and data.encode()), f"mount {target}")


def _drop_capabilities() -> None:
    """Keep nothing of what root may do, or the owner of a namespace."""
    if sys.platform != "linux":
        return
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    _call(LIBC.capset(header, (ctypes.c_uint32 * 6)()), "capset")


# Landlock -----------------------------------------------------------------------------------------------------------

RIGHTS = (13, 14, 15, 15, 16)  # how many rights on files each version of Landlock knows; later ones know 16
READ_RIGHTS = 0b1101  # run, read files, read folders
FILE_RIGHTS = 0xC007  # what a rule on a file may allow
USE_DEVICE = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def landlock_version() -> int:
    """The version of Landlock that the system has, 0 for none."""
    return max(0, LIBC.syscall(444, None, ctypes.c_size_t(0), 1)) if sys.platform == "linux" else 0


def restrict_paths(read: list[str], write: list[str]) -> None:
    """Allow this process, from now on, to read `read` and to use `write`, and nothing else of the file system.

    From version 4 on no TCP either, from version 6 on no abstract sockets and no signals to other processes.
    """
    version = landlock_version()
    if not version:
        raise OSError("this system has no Landlock")
    every = (1 << RIGHTS[min(version, len(RIGHTS)) - 1]) - 1
    rules = struct.pack("QQQ", every, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = _call(LIBC.syscall(444, rules[:size], ctypes.c_size_t(size), 0), "landlock_create_ruleset")
    wanted = [(path, READ_RIGHTS) for path in (*read, "/proc/self")]
    wanted += [(path, every) for path in write] + [(path, every) for path in USE_DEVICE]
    for path, rights in wanted:
        with contextlib.suppress(FileNotFoundError):
            at = os.open(path, os.O_PATH)
            rights &= every if os.path.isdir(path) else every & FILE_RIGHTS
            _call(LIBC.syscall(445, ruleset, 1, struct.pack("=Qi", rights, at), 0), f"landlock_add_rule {path}")
            os.close(at)
    no_new_privileges()
    _call(LIBC.syscall(446, ruleset, 0), "landlock_restrict_self")
    os.close(ruleset)


# Limits and system calls --------------------------------------------------------------------------------------------


def set_limits(limits: dict, warm: bool, level: str) -> None:
    """limits: "memory" in bytes, "seconds" of CPU time. A cold kernel has libraries still to map."""
    memory = limits["memory"]
    wanted = {
        "DATA": memory,
        "AS": memory + _mapped() + (0 if warm else 8 * GIB),  # shared memory, which does not count as data
        "CPU": int(limits["seconds"]),
        "FSIZE": 16 * 2**20,
        "NOFILE": 256,
        "CORE": 0,
    }
    if level == "bubblewrap":
        wanted["NPROC"] = 512  # counts threads too, and outside a user namespace all that the user runs
    for name, value in wanted.items():
        kind = getattr(resource, f"RLIMIT_{name}", None)
        if kind is None:
            continue
        most = resource.getrlimit(kind)[1]
        value = value if most == resource.RLIM_INFINITY else min(value, most)
        with contextlib.suppress(ValueError, OSError):  # some systems do not know all of them
            resource.setrlimit(kind, (value, value))


def no_new_privileges() -> None:
    """No program started from here gains rights, such as those of a set-user-id bit."""
    if sys.platform == "linux":
        _call(LIBC.prctl(38, 1, 0, 0, 0), "no_new_privs")


REFUSED = (  # system calls that no exercise needs: (number on x86-64, on ARM64); None where there is none
    ("fork", 57, None), ("vfork", 58, None), ("execve", 59, 221), ("execveat", 322, 281),
    ("socket", 41, 198), ("connect", 42, 203), ("bind", 49, 200),
    ("ptrace", 101, 117), ("process_vm_readv", 310, 270), ("process_vm_writev", 311, 271), ("tkill", 200, 130),
    ("pidfd_open", 434, 434), ("pidfd_getfd", 438, 438), ("pidfd_send_signal", 424, 424),
    ("memfd_create", 319, 279), ("memfd_secret", 447, 447), ("shmget", 29, 194), ("msgget", 68, 186),
    ("semget", 64, 190), ("mq_open", 240, 180), ("io_uring_setup", 425, 425), ("userfaultfd", 323, 282),
    ("perf_event_open", 298, 241), ("bpf", 321, 280), ("add_key", 248, 217), ("request_key", 249, 218),
    ("keyctl", 250, 219), ("mount", 165, 40), ("umount2", 166, 39), ("pivot_root", 155, 41), ("chroot", 161, 51),
    ("unshare", 272, 97), ("setns", 308, 268), ("open_tree", 428, 428), ("move_mount", 429, 429),
    ("fsopen", 430, 430), ("mount_setattr", 442, 442), ("open_by_handle_at", 304, 265), ("setsid", 112, 157),
    ("setpgid", 109, 154), ("setpriority", 141, 140), ("personality", 135, 92),
    # what Landlock lets everybody do to a file that they own, and what reaches the schedule of other processes
    ("chmod", 90, None), ("fchmod", 91, 52), ("fchmodat", 268, 53), ("fchmodat2", 452, 452), ("chown", 92, None),
    ("fchown", 93, 55), ("lchown", 94, None), ("fchownat", 260, 54), ("setxattr", 188, 5), ("lsetxattr", 189, 6),
    ("fsetxattr", 190, 7), ("removexattr", 197, 14), ("lremovexattr", 198, 15), ("fremovexattr", 199, 16),
    ("utime", 132, None), ("utimes", 235, None), ("futimesat", 261, None), ("utimensat", 280, 88),
    ("sched_setaffinity", 203, 122), ("sched_setattr", 314, 274), ("ioprio_set", 251, 30),
)  # fmt: skip
REFUSED_WITH = (  # the same with certain arguments: (number on x86-64, on ARM64, which argument, its refused values)
    ("fcntl", 72, 25, 1, (8, 10, 15, 1024, 1026)),  # signals about a file, sent to any process; leases, which bar it
    ("ioctl", 16, 29, 1, (0x5452, 0x8901, 0x8902)),  # the same
    ("prctl", 157, 167, 0, (1,)),  # a kernel ends with its parent
    (
        "sched_setscheduler",
        144,
        119,
        1,
        (3, 5, 0x40000003, 0x40000005),
    ),  # low priority for another; ZeroMQ sets the usual one for its threads
)
ONLY_SELF = (("kill", 62, 129), ("tgkill", 234, 131), ("rt_sigqueueinfo", 129, 138), ("rt_tgsigqueueinfo", 297, 240))
CLONE, CLONE3 = (56, 220), 435
PRLIMIT = (302, 261)
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
ALLOW, DENY, UNKNOWN, KILL = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000  # EPERM, ENOSYS
A_THREAD = 0x10000


def filter_calls() -> None:
    """Refuse, in every thread, the system calls that start a process, reach another one, or open a socket.

    Does nothing where the machine is neither x86-64 nor ARM64 with Linux.
    """
    if not _filter_known():
        return
    column, machine = MACHINES[platform.machine()]
    program = [_load(4), _jump(0x15, machine, 1, 0), _give(KILL), _load(0), _jump(0x35, 0x40000000, 0, 1), _give(DENY)]
    for number in (call[1 + column] for call in REFUSED if call[1 + column] is not None):
        program += [_jump(0x15, number, 0, 1), _give(DENY)]
    program += [_jump(0x15, CLONE3, 0, 1), _give(UNKNOWN)]  # the C library then takes clone
    program += [_jump(0x15, CLONE[column], 0, 4), _load(16), _jump(0x45, A_THREAD, 1, 0), _give(DENY), _give(ALLOW)]
    for call in REFUSED_WITH:
        tests = [part for value in call[4] for part in (_jump(0x15, value, 0, 1), _give(DENY))]
        body = [_load(16 + 8 * call[3]), *tests, _give(ALLOW)]
        program += [_jump(0x15, call[1 + column], 0, len(body)), *body]
    for number in (call[1 + column] for call in ONLY_SELF):
        mine = [_load(16), _jump(0x15, os.getpid(), 1, 0), _give(DENY), _give(ALLOW)]
        program += [_jump(0x15, number, 0, len(mine)), *mine]
    mine = [_load(16), _jump(0x15, 0, 2, 0), _jump(0x15, os.getpid(), 1, 0), _give(DENY), _give(ALLOW)]
    program += [_jump(0x15, PRLIMIT[column], 0, len(mine)), *mine, _give(ALLOW)]
    code = ctypes.create_string_buffer(b"".join(program))
    filters = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(program), ctypes.addressof(code)))
    number = (317, 277)[column]  # seccomp
    no_new_privileges()
    if _call(LIBC.syscall(number, 1, 1, filters), "seccomp"):  # SECCOMP_SET_MODE_FILTER, in all threads
        raise OSError("seccomp: a thread could not be filtered")


def _filter_known() -> bool:
    return sys.platform == "linux" and platform.machine() in MACHINES


def _load(offset: int) -> bytes:
    return struct.pack("HBBI", 0x20, 0, 0, offset)


def _jump(test: int, value: int, then: int, otherwise: int) -> bytes:
    return struct.pack("HBBI", test, then, otherwise, value)


def _give(result: int) -> bytes:
    return struct.pack("HBBI", 0x06, 0, 0, result)


# --------------------------------------------------------------------------------------------------------------------


def _try(level: str) -> None:
    """Raise OSError when this system does not let a kernel be confined so."""
    if level == "limits":
        return
    heard, told = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            if level == "bubblewrap":
                _unshare()
                _hide_processes()
            else:
                restrict_paths(["/"], [])
        except OSError as error:
            os.write(told, str(error).encode())
        finally:
            os._exit(0)
    os.close(told)
    os.waitpid(process, 0)
    with os.fdopen(heard) as said:
        why = said.read()
    if why:
        raise OSError(why)


def _verify_one_thread() -> None:
    """A thread does not live on in a fork, and what it held stays locked for ever."""
    with contextlib.suppress(FileNotFoundError):
        threads = os.listdir("/proc/self/task")
        if len(threads) > 1:
            raise RuntimeError(f"{len(threads)} threads run where kernels are to be forked")


def _set_dumpable(value: int) -> None:
    if sys.platform == "linux":
        LIBC.prctl(4, value)


def _die_with_parent() -> None:
    if sys.platform == "linux":
        LIBC.prctl(1, signal.SIGKILL)


def _mapped() -> int:
    """Bytes of address space in use."""
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 8 * GIB


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _call(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
