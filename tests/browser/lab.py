"""JupyterLab as a learner has it, driven from tests.

def test_my_widget(lab):
    with lab.open_cells(["from course_utils.views import MyWidget", "w = MyWidget(...)\nw"]) as notebook:
        notebook.find(".my-widget button").click()
        assert notebook.python("w.value") == "3"
        notebook.check_clean()                       # cells, kernel, console, outside requests
        notebook.check_accessible(".my-widget")      # axe-core, in both themes
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import urllib.request

import nbformat

from course_utils.doctor import find_chromium

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-gpu-rasterization",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
THEMES = ("JupyterLab Light", "JupyterLab Dark")
PORT = 23_000  # the first that a server tries
PATIENCE = 10_000  # milliseconds that an expected change on the page may take

# Console errors that are not ours. Chromium reports a kernel's websocket that closes when its notebook is shut down.
HARMLESS = ("WebSocket connection to 'ws://127.0.0.1",)

_SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
    "@jupyterlab/docmanager-extension:plugin": {"autosave": False},
}

# What takes seconds to start in the server and shows nothing on the page.
_NOT_SERVED = ("nbgrader.server_extensions.formgrader",)

# Without it the second of two small messages from the kernel waits 40 ms for the page to acknowledge the first.
_AT_ONCE = """
from jupyter_server.services.kernels.websocket import KernelWebsocketHandler

opened = KernelWebsocketHandler.open

async def open_at_once(self, *arguments, **names):
    self.set_nodelay(True)
    return await opened(self, *arguments, **names)

KernelWebsocketHandler.open = open_at_once
"""


@contextlib.contextmanager
def launched():
    """Chromium without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class Lab:
    """A JupyterLab server on a folder of its own, and one page that shows it; nothing but loopback is reachable."""

    def __init__(self, browser, folder):
        self.folder = folder / "notebooks"
        self.folder.mkdir()
        self.log = folder / "server.log"
        self.server = self._serve(folder)
        self.runtime_folder = folder / "runtime"
        self.console = []
        self.outside = []
        self.made = 0
        try:
            self.url = self._wait_for_server()
            self.kernel = self._post("kernels", name="python3", path="")["id"]  # it starts while the page loads
            self.context, self.page = self.opened_in(browser)
        except BaseException:
            self.close()
            raise

    def opened_in(self, browser):
        """JupyterLab opened anew in a context of its own: that context and its page, with no notebook opened yet."""
        context = browser.new_context(viewport={"width": 1280, "height": 1000}, reduced_motion="reduce")
        try:
            context.route("**/*", self._route)
            page = context.new_page()
            page.set_default_timeout(PATIENCE)
            page.on("console", lambda message: self._record(message.type, message.text))
            page.on("pageerror", lambda error: self._record("error", error.stack or str(error)))
            page.goto(f"{self.url}/lab?reset", wait_until="domcontentloaded")
            page.wait_for_function("() => window.jupyterapp?.restored", timeout=60_000)
            page.evaluate("async () => { await window.jupyterapp.restored; }")
            # JupyterLab's body is 0 pixels high, and for axe-core whatever is in such a body is invisible.
            page.add_style_tag(content="body { height: 100vh; }")
            page.evaluate(
                "async () => { await window.jupyterapp.commands.execute('application:set-mode',"
                " { mode: 'single-document' }).catch(() => {}); }"
            )
        except BaseException:
            context.close()
            raise
        return context, page

    def open_cells(self, cells):
        """A notebook of these code cells, opened and run in the kernel that all such notebooks use, one at a time."""
        self.made += 1
        name = f"widgets_{self.made}.ipynb"
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(notebook, self.folder / name)
        self._post("sessions", path=name, name=name, type="notebook", kernel={"id": self.kernel})
        return Notebook(self, name)

    def open_file(self, path, cells):
        """A copy of a notebook file, opened; the cells of these indices run."""
        self.made += 1
        folder = self.folder / f"copy_{self.made}"
        folder.mkdir()
        shutil.copy(path, folder)
        return Notebook(self, f"{folder.name}/{pathlib.Path(path).name}", cells)

    def theme(self, name):
        """Switches the whole page to "JupyterLab Light" or "JupyterLab Dark"."""
        self.page.evaluate(
            "async (theme) => { await window.jupyterapp.commands.execute('apputils:change-theme', { theme }); }", name
        )
        self.page.wait_for_function("(theme) => document.body.dataset.jpThemeName === theme", arg=name)

    def close(self):
        if hasattr(self, "context"):
            self.context.close()
        self.server.terminate()
        try:
            self.server.wait(10)
        except subprocess.TimeoutExpired:
            self.server.kill()
            self.server.wait()

    def _serve(self, folder):
        settings = folder / "config" / "labconfig" / "default_setting_overrides.json"
        settings.parent.mkdir(parents=True)
        settings.write_text(json.dumps(_SETTINGS))
        (folder / "config" / "jupyter_server_config.py").write_text(_AT_ONCE)
        shutil.copy(REPOSITORY / "labconfig" / "page_config.json", settings.parent)
        # The kernel is the one beside this Python: these folders are looked at before sys.prefix, not instead of it.
        environment = dict(
            os.environ,
            JUPYTER_CONFIG_DIR=str(folder / "config"),
            JUPYTER_DATA_DIR=str(folder / "data"),
            JUPYTER_RUNTIME_DIR=str(folder / "runtime"),
            IPYTHONDIR=str(folder / "ipython"),
            PYTHONPATH=os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")]),
        )
        command = [
            sys.executable,
            "-m",
            "jupyterlab",
            "--no-browser",
            "--allow-root",
            f"--port={PORT}",
            "--ServerApp.port_retries=999",  # it takes the next free one, and says which
            "--ServerApp.ip=127.0.0.1",
            "--IdentityProvider.token=",
            "--ServerApp.password=",
            f"--ServerApp.root_dir={self.folder}",
            "--ServerApp.disable_check_xsrf=True",
            "--ServerApp.terminals_enabled=False",
            "--LabApp.expose_app_in_browser=True",
            "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
            "--LabApp.news_url=None",
            *(f"--ServerApp.jpserver_extensions={name}=False" for name in _NOT_SERVED),
        ]
        with self.log.open("wb") as log:
            return subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)

    def _wait_for_server(self):
        """The address that the server wrote down and answers at."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and self.server.poll() is None:
            try:
                url = json.loads((self.runtime_folder / f"jpserver-{self.server.pid}.json").read_text())["url"].rstrip(
                    "/"
                )
                urllib.request.urlopen(f"{url}/api/status", timeout=10).close()
                return url
            except (OSError, ValueError):  # not yet there, half written, or not yet answering
                time.sleep(0.1)
        raise RuntimeError(f"JupyterLab did not start:\n{self.log.read_text(errors='replace')[-3000:]}")

    def _post(self, what, **body):
        """The answer of the server's REST API to a POST."""
        data = json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(f"{self.url}/api/{what}", data, headers)) as answer:
            return json.load(answer)

    def _route(self, route):
        if route.request.url.startswith((self.url, "data:", "blob:")):
            route.continue_()
        else:
            self.outside.append(route.request.url)
            route.abort()

    def _record(self, kind, text):
        if kind == "error" and not text.startswith(HARMLESS) and not _is_of_the_lab(text):
            self.console.append(text)


class Notebook:
    """A notebook that is open in the lab and has run, all of it or some cells; leaving the `with` block closes it."""

    def __init__(self, lab, path, cells=None, timeout=120):
        self.lab = lab
        self.page = lab.page
        self.path = path
        lab.console.clear()
        lab.outside.clear()
        self._log_start = lab.log.stat().st_size
        self.page.evaluate(_OPEN, path)
        self.page.evaluate(_RUN, [cells, timeout * 1000])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.page.evaluate(_CLOSE, self.lab.kernel)

    def find(self, selector):
        """Playwright's locator, within this notebook."""
        return self.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)").locator(selector)

    def output(self, place):
        """Playwright's locator of what the cell of this index shows."""
        return self.find(".jp-Notebook-cell").nth(place).locator(".jp-Cell-outputWrapper")

    def save(self):
        """Saves as the menu does. Raises AssertionError where JupyterLab asks something or the file is not written."""
        self.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
        assert self.page.locator(".jp-Dialog").count() == 0, self.page.locator(".jp-Dialog").inner_text()
        assert not self.page.evaluate("window.courseNotebook.context.model.dirty")
        return nbformat.read(self.lab.folder / self.path, as_version=4)

    def reopen(self):
        """Shuts the kernel down, closes the notebook and opens it again, with a new kernel and nothing run."""
        self.page.evaluate(_CLOSE)
        self.page.evaluate(_OPEN, self.path)

    def run(self, code):
        """Runs code in the notebook's kernel and returns what it printed. Raises AssertionError where it raised."""
        printed, error = self.page.evaluate(_EXECUTE, code)
        assert not error, f"{code!r} raised {error}"
        return printed

    def python(self, expression):
        """The repr of an expression in the notebook's kernel."""
        return self.run(f"print(repr(({expression})))").rstrip("\n")

    def expect(self, expression, value, patience=PATIENCE):
        """Waits until an expression in Python has this repr: a widget's change may be on its way."""
        observed = [None]

        def becomes():
            observed[0] = self.python(expression)
            return observed[0] == value

        self.wait(becomes, lambda: f"{expression} becomes {value}, it is {observed[0]}", patience)

    def wait(self, condition, what, patience=PATIENCE):
        """Waits until condition() holds. Raises AssertionError saying what did not happen."""
        deadline = time.monotonic() + patience / 1000
        while not condition():
            text = what() if callable(what) else what
            assert time.monotonic() < deadline, f"within {patience / 1000:g} s it did not happen that {text}"
            self.page.wait_for_timeout(25)

    def settle(self):
        """Waits until the outputs of the cells keep their places, as after a change of the window's size."""
        self.page.evaluate(_SETTLE)

    @contextlib.contextmanager
    def hand_clock(self):
        """Clocks that start meanwhile stand still: `tick()` lets each go off once, `tick(n)` n times.

        They are those of setInterval, and of setTimeout where it is to wait for as long as a widget waits for Python.
        """
        self.page.evaluate(_STOP_CLOCKS)
        try:
            yield lambda times=1: self.page.evaluate("(n) => { while (n--) window.courseTick(); }", times)
        finally:
            self.page.evaluate("() => window.courseStart()")

    def cell_errors(self):
        """What cells raised, one line each."""
        return self.page.evaluate(_ERRORS)

    def kernel_errors(self):
        """Tracebacks that the kernel wrote past the notebook, as a widget's callback does."""
        with self.lab.log.open("rb") as log:
            log.seek(self._log_start)
            text = log.read().decode(errors="replace")
        return [part[:2000] for part in text.split("Traceback (most recent call last)")[1:]]

    def check_clean(self):
        """No error in a cell, the kernel or the console, and nothing asked for beyond this machine."""
        result = {
            "cell errors": self.cell_errors(),
            "kernel errors": self.kernel_errors(),
            "console errors": self.lab.console,
            "outside requests": self.lab.outside,
        }
        result = {name: list(items) for name, items in result.items() if items}
        assert not result, json.dumps(result, indent=2, ensure_ascii=False)

    def check_accessible(self, *selectors):
        """axe-core finds no violation under these selectors, in either theme."""
        from axe_playwright_python.sync_playwright import Axe

        for selector in selectors:
            assert self.find(selector).first.is_visible(), f"there is nothing to check at {selector}"
        size = self.page.viewport_size
        tall = self.page.evaluate("Math.max(...[...document.querySelectorAll('*')].map((node) => node.scrollHeight))")
        self.page.set_viewport_size({**size, "height": tall + 200})  # axe-core judges no colour out of sight
        self.settle()
        try:
            for theme in THEMES:
                self.lab.theme(theme)
                response = Axe().run(self.page, {"include": [[selector] for selector in selectors]}).response
                assert response["passes"], f"axe-core found nothing to check at {', '.join(selectors)}"
                text = [
                    f"{theme}: {violation['id']}: {violation['help']}: {node['html'][:200]} {node['failureSummary']}"
                    for violation in response["violations"]
                    for node in violation["nodes"]
                ]
                assert not text, "\n".join(text)
        finally:
            self.page.set_viewport_size(size)
            self.lab.theme(THEMES[0])


def _is_of_the_lab(text):
    """JupyterLab's own panels sometimes drop a node twice when the machine is busy, and its debugger and its subshells
    give up on a kernel that ends. No widget calls removeChild: a test of views sees to that."""
    own = (
        "Failed to execute 'removeChild' on 'Node'",
        "Could not restore the debugger state",
        "Canceled future for create_subshell_request",
    )
    return any(each in text for each in own) and "blob:" not in text


_OPEN = """async (path) => {
  const app = window.jupyterapp;
  const widget = await app.commands.execute("docmanager:open", { path, factory: "Notebook" });
  window.courseNotebook = widget;
  await widget.context.ready;
  await widget.sessionContext.ready;
  await widget.revealed;
  await widget.sessionContext.session.kernel.info;
}"""

_RUN = """async ([cells, limit]) => {
  const { content } = window.courseNotebook, command = cells ? "notebook:run-cell" : "notebook:run-all-cells";
  if (cells) {
    content.activeCellIndex = cells[0]; // the active cell runs with those selected
    for (const place of cells) content.select(content.widgets[place]);
    for (const { model } of content.widgets) model.trusted = true; // as running all would
  }
  const late = new Promise((_, fail) => setTimeout(() => fail(new Error(`cells still run after ${limit} ms`)), limit));
  await Promise.race([window.jupyterapp.commands.execute(command), late]);
  content.deselectAll();
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""

# A notebook's own kernel is shut down. In the kernel that notebooks share, nothing of this one is left.
_CLOSE = """async (shared) => {
  const widget = window.courseNotebook;
  const saved = widget.context.sessionContext;
  const { kernel } = saved.session;
  const code = "import ipywidgets; ipywidgets.Widget.close_all(); get_ipython().reset()";
  if (kernel.id === shared) await kernel.requestExecute({ code }).done;
  else await saved.shutdown();
  widget.context.model.dirty = false;
  widget.dispose();
}"""

# A widget holds a change back until Python has answered its last one, so first everything that was sent is answered.
_EXECUTE = """async (code) => {
  const { kernel } = window.courseNotebook.sessionContext.session;
  const seen = new Set(), unseen = () => [...kernel._futures.values()].filter((future) => !seen.has(future));
  for (let sent; (sent = unseen()).length; sent.forEach((future) => seen.add(future)))
    await Promise.allSettled(sent.map(({ done }) => done));
  const future = kernel.requestExecute({ code });
  let printed = "", error = "";
  future.onIOPub = ({ header, content }) => {
    if (header.msg_type === "stream" && content.name === "stdout") printed += content.text;
    if (header.msg_type === "error") error = `${content.ename}: ${content.evalue}`;
  };
  await future.done;
  return [printed, error];
}"""

_SETTLE = """async () => {
  const places = () => JSON.stringify([...document.querySelectorAll(".jp-OutputArea-output, [class^='course-']")]
    .map((node) => node.getBoundingClientRect()));
  for (let frames = 0, before; frames < 5; frames++) {
    await new Promise(requestAnimationFrame);
    const now = places();
    if (now !== before) frames = 0;
    before = now;
  }
}"""

_STOP_CLOCKS = """() => {
  const { setInterval, clearInterval, setTimeout, clearTimeout } = window, acts = new Map();
  const keep = (act) => { const id = {}; acts.set(id, act); return id; };
  window.setInterval = keep;
  window.setTimeout = (act, after, ...rest) => after === 400 ? keep(act) : setTimeout.call(window, act, after, ...rest);
  window.clearInterval = (id) => acts.delete(id) || clearInterval.call(window, id);
  window.clearTimeout = (id) => acts.delete(id) || clearTimeout.call(window, id);
  window.courseTick = () => [...acts.values()].forEach((act) => act());
  window.courseStart = () => Object.assign(window, { setInterval, clearInterval, setTimeout, clearTimeout });
}"""

_ERRORS = """() => window.courseNotebook.content.widgets.flatMap(({ model }, place) => {
  if (model.type !== "code") return [];
  return model.outputs.toJSON().filter((output) => output.output_type === "error")
    .map((output) => `cell ${place}: ${output.ename}: ${output.evalue}`);
})"""
