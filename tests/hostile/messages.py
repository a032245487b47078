"""Submissions that forge evidence, or speak to the grader over the kernel's own sockets."""

from .entries import CHECKS, FAILED, KERNEL, SHELL, UNSHIFTED, Entry, cheat, in_answers

NO_EVIDENCE = FAILED | {"softmax_row": "error"}
MIME = '"application/vnd.course.evidence+json"'
FORGE = (
    CHECKS
    + """
names = [rung.name for rung in evidence["draw_rungs"](1, "softmax_row")]
deep = []
for _ in range(250):
    deep = [deep]
def forged(day, name, names_, *, hidden=False, seed=""):
    return {{"exercise": name, "hidden": hidden, "outcomes": {outcomes}}}
evidence["gather"], evidence["as_line"] = forged, __import__("json").dumps
"""
)
LATE = f"""
import threading, time
requests, ended = [], time.monotonic() + 20
kernel.shell.events.register("pre_run_cell", lambda *info: requests.append(kernel.get_parent()))
data = {{{MIME}: '{{"exercise": "scores", "hidden": false, "outcomes": []}}'}}
def later():
    while time.monotonic() < ended:
        time.sleep(0.01)
        if "scores" in kernel.shell.user_ns:
            shown = {{"data": data, "metadata": {{}}}}
            kernel.session.send(kernel.iopub_socket, "display_data", shown, requests[-1], ident=b"display_data")
threading.Thread(target=later, daemon=True).start()
"""


def _forged(name, tries, outcomes, status="failed"):
    """An entry whose evidence for softmax_row and all after it is made up in the kernel."""
    source = FORGE.format(outcomes=outcomes) + UNSHIFTED
    return Entry(name, tries, in_answers({"softmax_row": source}), {"softmax_row": status})


def _sent(name, tries, attack, deserves=FAILED):
    """An entry that sends messages of its own while its two slips are checked."""
    return Entry(name, tries, cheat(KERNEL + attack), deserves)


def _values(numbers, shape="[1]"):
    return f'[{{"rung": name, "values": {{"weights": {{"shape": {shape}, "numbers": {numbers}}}}}}} for name in names]'


ENTRIES = [
    Entry(
        "evidence shown beforehand",
        "displays evidence of its own in the answer cell",
        cheat(f"""
import json
from IPython.display import display
for hidden in (False, True):
    forged = json.dumps({{"exercise": "softmax_row", "hidden": hidden, "outcomes": []}})
    display({{{MIME}: forged}}, raw=True)
"""),
        FAILED,
    ),
    Entry(
        "evidence shown in the check",
        "displays evidence of its own whenever it is called",
        in_answers(
            {
                "softmax_row": f"""
import json
from IPython.display import display
def softmax_row(row):
    for hidden in (False, True):
        forged = json.dumps({{"exercise": "softmax_row", "hidden": hidden, "score": 99, "outcomes": []}})
        display({{{MIME}: forged}}, raw=True)
    return [1.0 / len(row)] * len(row)
"""
            }
        ),
        {"softmax_row": "error"},
    ),
    Entry(
        "evidence in other outputs",
        "sends evidence as a result, an update and a stream, where only a display counts",
        in_answers(
            {
                "softmax_row": f"""
from IPython.display import display, update_display
def softmax_row(row):
    data = {{{MIME}: '{{"exercise": "softmax_row", "hidden": false, "outcomes": []}}'}}
    update_display(data, raw=True, display_id="course")
    print(data)
    return [1.0] * len(row)
"""
            }
        ),
        {"softmax_row": "failed"},
    ),
    _forged("evidence without outcomes", "claims that nothing was asked", "[]", "error"),
    _forged("evidence of infinite numbers", "answers with infinities", _values("[float('inf')]")),
    _forged("evidence of no numbers", "answers with NaN", _values("[float('nan')]")),
    _forged("evidence of words", "answers with text that float() reads or does not", _values('["1e999"]')),
    _forged("evidence of objects", "answers with objects in place of lists", _values('{"0": 1}', '{"0": 1}'), "failed"),
    _forged("evidence of truth", "answers with True for shape and numbers", _values("True", "True")),
    _forged("evidence without names", "names its rungs by lists", '[{"rung": [name]} for name in names]', "error"),
    _forged("evidence of nothing", "sends null in place of outcomes", "None", "error"),
    _forged(
        "evidence nested deeply",
        "sends lists in lists, 250 deep",
        '[{"rung": name, "values": {"weights": {"shape": deep, "numbers": deep}}} for name in names]',
        "failed",
    ),
    _forged(
        "evidence of 20,000 rungs",
        "has the grader look up rungs that there never were",
        '[{"rung": f"r{i}"} for i in range(20_000)]',
        "error",
    ),
    _forged("evidence of 12 MB", "has the grader parse millions of empty lists", "[[]] * 3_000_000", "killed"),
    Entry(
        "evidence taken back",
        "clears the outputs when the check has ended",
        cheat(
            SHELL
            + """
from IPython.display import clear_output
shell.events.register("post_run_cell", lambda *a: clear_output())
"""
        ),
        FAILED,
    ),
    Entry(
        "late evidence",
        "a thread of it waits for the next exercise and shows evidence there",
        in_answers({"softmax_row": KERNEL + LATE + UNSHIFTED}),
        {"softmax_row": "failed"},
    ),
    _sent(
        "a forged reply",
        "answers the grader's request before the cell has ended",
        """
content = {"status": "ok", "execution_count": 1, "user_expressions": {}, "payload": []}
for _ in range(50):
    kernel.session.send(kernel.shell_stream, "execute_reply", content, parent=kernel.get_parent(),
                        ident=kernel._parent_ident.get("shell") if hasattr(kernel._parent_ident, "get") else None)
""",
    ),
    _sent(
        "a forged end",
        "says idle for the request that still runs, before the evidence",
        """
send, idle = kernel.session.send, {"execution_state": "idle"}
send(kernel.iopub_socket, "status", idle, parent=kernel.get_parent(), ident=b"status")
""",
    ),
    _sent(
        "odd messages",
        "sends messages whose parts are of the wrong types",
        """
for content in ([], {"data": 7}, {"execution_state": []}, {"name": 1, "text": []}):
    for kind in ("stream", "display_data", "status", "error", "execute_result", "no such type"):
        kernel.session.send(kernel.iopub_socket, kind, content, parent=kernel.get_parent(), ident=b"odd")
""",
        NO_EVIDENCE,
    ),
    _sent(
        "raw frames",
        "sends bytes that are no message",
        "kernel.iopub_socket.send_multipart([b'odd', b'junk'])\n",
        FAILED | {"softmax_row": "killed"},
    ),
    _sent(
        "messages signed with another key",
        "changes the key of the session",
        "kernel.session.key = b'mine'\n",
        FAILED | {"softmax_row": "killed"},
    ),
    _sent(
        "a handler of its own",
        "takes over the handling of requests and reports success for each",
        """
async def handle(stream, ident, parent):
    content = {"status": "ok", "execution_count": 1, "user_expressions": {}, "payload": []}
    send = kernel.session.send
    send(kernel.iopub_socket, "status", {"execution_state": "busy"}, parent=parent, ident=b"status")
    send(stream, "execute_reply", content, parent=parent, ident=ident)
    send(kernel.iopub_socket, "status", {"execution_state": "idle"}, parent=parent, ident=b"status")
kernel.shell_handlers["execute_request"] = handle
""",
        NO_EVIDENCE,
    ),
    _sent(
        "a kernel that shuts down",
        "tells the kernel to end in good order",
        "import os\nkernel.io_loop.call_later(0, os._exit, 0)\n",
        FAILED | {"softmax_row": "killed"},
    ),
    _sent(
        "a kernel without file descriptors",
        "closes all that the kernel speaks through",
        "import os\nos.closerange(3, 4096)\n",
        FAILED | {"softmax_row": "killed"},
    ),
    Entry(
        "a hurried end",
        "says idle in every call, so that its evidence comes too late for its own check and early for the next",
        in_answers(
            {
                "softmax_row": KERNEL
                + """
def softmax_row(row):
    kernel.session.send(
        kernel.iopub_socket, "status", {"execution_state": "idle"}, parent=kernel.get_parent(), ident=b"status")
    return [1.0] * len(row)
"""
            }
        ),
        {"softmax_row": "error"},
    ),
]
