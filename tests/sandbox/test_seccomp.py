"""The filter of system calls: what its tables say it does, and each rule names who shows it."""

import re
import struct

import pytest
from hostile.corpus import CORPUS

from course_utils.course import ROOT
from course_utils.sandbox.inside import seccomp
from course_utils.sandbox.inside.seccomp import MACHINES, ONLY_SELF, REFUSED, REFUSED_WITH, filter_program

ALLOW = seccomp.SECCOMP_RET_ALLOW
DENY = seccomp.SECCOMP_RET_ERRNO | seccomp.EPERM
ME = 4711


def decide(machine: str, number: int, *arguments: int, arch: int | None = None) -> int:
    """What the filter gives for a call, run instruction by instruction as the system does."""
    column, own = MACHINES[machine]
    data = struct.pack("<IIQ6Q", number, own if arch is None else arch, 0, *(*arguments, *[0] * 6)[:6])
    program = [struct.unpack("HBBI", each) for each in filter_program(column, own, ME)]
    place = loaded = 0
    while True:
        code, then, otherwise, value = program[place]
        place += 1
        if code == seccomp.BPF_LD_W_ABS:
            (loaded,) = struct.unpack_from("<I", data, value)
        elif code == seccomp.BPF_RET:
            return value
        else:
            checks = {
                seccomp.BPF_JEQ: loaded == value,
                seccomp.BPF_JGE: loaded >= value,
                seccomp.BPF_JSET: bool(loaded & value),
            }[code]
            place += then if checks else otherwise


@pytest.mark.parametrize("machine", MACHINES)
def test_every_call_of_the_table_is_refused_and_those_of_a_notebook_are_not(machine):
    column = MACHINES[machine][0]
    refused = {numbers[column] for rule in REFUSED for numbers in rule.calls.values()} - {None}
    assert all(decide(machine, number) == DENY for number in refused)
    some = {
        "x86_64": {"read": 0, "write": 1, "mmap": 9, "futex": 202},
        "aarch64": {"read": 63, "write": 64, "mmap": 222},
    }
    assert all(decide(machine, number) == ALLOW for number in some[machine].values())


@pytest.mark.parametrize("machine", MACHINES)
def test_certain_arguments_are_refused_and_others_are_not(machine):
    for rule in REFUSED_WITH:
        number = rule.numbers[MACHINES[machine][0]]
        for value in rule.values:
            arguments = [0] * 6
            arguments[rule.argument] = value
            assert decide(machine, number, *arguments) == DENY, rule
        assert decide(machine, number, 99, 99, 99) == ALLOW, rule


@pytest.mark.parametrize("machine", MACHINES)
def test_a_process_signals_itself_alone_and_starts_threads_alone(machine):
    column = MACHINES[machine][0]
    for numbers in ONLY_SELF.values():
        assert decide(machine, numbers[column], ME) == ALLOW
        assert decide(machine, numbers[column], ME + 1) == decide(machine, numbers[column], 2**32 - 1) == DENY
    limits = seccomp.SYS_prlimit64[column]
    assert [decide(machine, limits, who) for who in (0, ME, ME + 1)] == [ALLOW, ALLOW, DENY]
    clone = seccomp.SYS_clone[column]
    assert [decide(machine, clone, flags) for flags in (seccomp.CLONE_THREAD, 0x11)] == [ALLOW, DENY]
    assert decide(machine, seccomp.SYS_clone3) == seccomp.SECCOMP_RET_ERRNO | seccomp.ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_of_another_machine_end_the_process(machine):
    assert decide(machine, 0, arch=0x40000003) == seccomp.SECCOMP_RET_KILL_PROCESS
    assert decide(machine, 0x40000001) == DENY


def test_every_rule_says_what_it_stops_and_who_shows_it():
    for rule in (*REFUSED, *REFUSED_WITH):
        assert rule.why.endswith(".")
        if rule.tested_by.startswith("tests/"):
            assert (ROOT / rule.tested_by).is_file()
        else:
            assert set(rule.tested_by.split("; ")) <= CORPUS.keys(), rule.tested_by


def test_what_the_walls_quote_of_the_corpus_is_there():
    """In the modules beside: an attack's name in quotation marks is that of an entry."""
    for path in (ROOT / "course_utils/sandbox/inside").glob("*.py"):
        text = " ".join(re.sub(r"^\s*#", "", line) for line in path.read_text(encoding="utf-8").splitlines())
        comments = re.findall(r'#[^"]*((?:"[a-z][^"]* [^"]*"[^"#]*)+)', path.read_text(encoding="utf-8"))
        quoted = {name for comment in comments for name in re.findall(r'"([a-z][^"]* [^"]*)"', comment)}
        docs = re.findall(r'"""(.*?)"""', text, re.DOTALL)
        quoted |= {" ".join(name.split()) for doc in docs for name in re.findall(r'"([a-z][^"]* [^"]*)"', doc)}
        assert quoted <= CORPUS.keys(), (path.name, quoted - CORPUS.keys())
