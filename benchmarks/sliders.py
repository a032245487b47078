"""How quick are the widgets' sliders, from a trait set in Python or an input event to the painted frame?

And how long does a frame take while a curve is drawn, or a query dragged? Run with nothing else on the machine:
`.venv/bin/python benchmarks/sliders.py`. For another slider add a line to SLIDERS.
"""

import importlib.metadata
import os
import pathlib
import platform
import statistics
import sys
import tempfile
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from tests.browser.lab import Lab, launched

MOVES = 60
WARM_UP = 5
TARGET = 50
FRAME = 16  # milliseconds: 60 frames a second
CURVE = "Guess.curve(1, 'drawn', 'How?', range({0}), truth=[0.5] * {0}, low=0, high=1, root=tempfile.mkdtemp())"
SET_UP = """
import tempfile, time
import numpy as np
from course_utils.models import induction
from course_utils.views import *
"""
PLACES = (6, 24)  # of a drawn curve: as in the lessons, and the most that there can be
PLANE = "QueryPlane([1, 0.5], np.eye(8)[:{0}, :2] + 0.1, np.arange(16).reshape(8, 2)[:{0}] % 7)"
KEYS = (3, 8)  # of a plane in which a query is dragged: the fewest and the most that there can be


class Slider(NamedTuple):
    """A widget to make, the trait that its slider sets, values for the trait in Python, and the slider's label."""

    widget: str
    trait: str
    values: list
    label: str


SLIDERS = [
    Slider("SaturationExplorer()", "d_k", [2**power for power in range(13)], "d_k"),
    Slider("SaturationExplorer(512)", "n_keys", [2, 4, 8, 16, 32], "number of keys"),
    Slider("SaturationExplorer(512, 32)", "seed", list(range(0, 800, 8)), ""),
    Slider("TemperatureExplorer(range(12))", "temperature", [0.1, 0.5, 1, 3, 20], "temperature"),
    Slider("MaskPainter('the cat sat on the mat'.split(), family='padding')", "length", [0, 2, 3, 5], "real keys"),
    Slider("MaskPainter('the cat sat on the mat'.split(), family='sliding window')", "window", [1, 2, 4, 6], "window"),
    Slider("DecodeStepper(list('abcd'), list('efghijklmnop'))", "step", [0, 3, 7, 11], "pass"),
    Slider("MemoryCalculator()", "context", [2**power for power in range(8, 18)], ""),
    Slider("OnlineSoftmaxStepper(range(32))", "step", [0, 8, 20, 32], "step"),
    Slider("TileWalker(32, d=16, block_q=8, block_k=2)", "step", [0, 20, 41, 70], "step"),
    Slider("HeadAblation(induction.load(), induction.repeated(1, 12))", "off", [[], [(0, 3)], [(1, 0), (1, 1)]], ""),
]


def main():
    cells = [SET_UP]
    cells += [f"widget_{i} = {slider.widget}\nwidget_{i}" for i, slider in enumerate(SLIDERS)]
    cells += [CURVE.format(places).replace("'drawn'", f"'drawn {places}'") for places in PLACES]
    cells += [f"plane_{keys} = {PLANE.format(keys)}\nplane_{keys}" for keys in KEYS]
    with launched() as browser, tempfile.TemporaryDirectory() as folder:
        lab = Lab(browser, pathlib.Path(folder))
        try:
            with lab.open_cells(cells) as notebook:
                measurements = [measure(notebook, place, slider) for place, slider in enumerate(SLIDERS)]
                drawn = [notebook.page.evaluate(DRAW, len(SLIDERS) + 1 + place) for place in range(len(PLACES))]
                first = len(SLIDERS) + 1 + len(PLACES)
                dragged = [notebook.page.evaluate(DRAG, first + place) for place in range(len(KEYS))]
                ahead = notebook.page.evaluate(CLOCK)
                notebook.check_clean()
        finally:
            lab.close()
        chromium = browser.version
    packages = ("anywidget", "ipywidgets", "jupyterlab", "torch")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(f"Chromium {chromium}; {versions}; load {os.getloadavg()[0]:.1f}; the page's clock is {ahead:+.1f} ms ahead")
    for slider, (set_in_python, moved) in zip(SLIDERS, measurements, strict=True):
        print(f"{slider.widget}, {slider.trait}")
        print(f"  set in Python to painted frame: {describe_times(set_in_python)}")
        if moved:
            print(f"  slider moved to painted frame:  {describe_times(moved)}")
    for places, times in zip(PLACES, drawn, strict=True):
        print(f"Guess.curve, a stroke over {places} places")
        print(f"  a frame, from the pointer's move to its paint: {describe_times(times, FRAME)}")
    for keys, times in zip(KEYS, dragged, strict=True):
        print(f"QueryPlane, a query dragged among {keys} keys")
        print(f"  a frame, from the pointer's move to its paint: {describe_times(times, FRAME)}")


def measure(notebook, place, slider):
    """Milliseconds of many moves: (set in Python, moved on the page), in turns; the second is empty without a label."""
    page = notebook.page
    in_python = []
    on_page = []
    page.evaluate(SHOW, place + 1)
    for move in range(MOVES + WARM_UP):
        notebook.run("pass")  # what the last move set off in Python has to be on the page before the watch begins
        page.wait_for_timeout(60 + 7 * (move % 5))
        page.evaluate(WATCH, place + 1)
        start = notebook.run(SET.format(name=f"widget_{place}", trait=slider.trait, values=slider.values, move=move))
        in_python.append(page.evaluate("window.coursePainted") - 1000 * float(start))
        page.wait_for_timeout(20)
        if slider.label:
            on_page.append(page.evaluate(MOVE, [place + 1, slider.label, move]))
    return in_python[WARM_UP:], on_page[WARM_UP:]


def describe_times(times, target=TARGET):
    median, high = statistics.median(times), statistics.quantiles(times, n=20)[-1]
    verdict = f"{'meets' if median < target else 'misses'} {target}"
    spread = f"95% below {high:.1f}; {min(times):.1f} to {max(times):.1f}"
    return f"median {median:.1f} ms, {verdict} (of {len(times)}; {spread})"


# In the kernel: the next value that is not the present one, and when it was set.
SET = """
_next = next(value for value in {values}[{move} % len({values}):] + {values} if value != {name}.{trait})
_start = time.time()
{name}.{trait} = _next
print(_start)
"""

# A frame is painted when the task after its animation frame runs. Both clocks are the machine's.
PAINTED = """
const node = (place) => {
  const cell = window.courseNotebook.content.widgets[place].node;
  return cell.querySelector(".jp-OutputArea-output [class^=course-]");
};
const painted = () => new Promise((done) => requestAnimationFrame(() => {
  const channel = new MessageChannel();
  channel.port1.onmessage = () => done(performance.timeOrigin + performance.now());
  channel.port2.postMessage(0);
}));
"""

SHOW = f"(place) => {{ {PAINTED} node(place).scrollIntoView({{ block: 'center' }}); }}"

# The next change inside the widget, whatever it is, and then its frame.
WATCH = f"""(place) => {{
  {PAINTED}
  window.coursePainted = new Promise((done, fail) => {{
    const observer = new MutationObserver(() => {{ observer.disconnect(); painted().then(done); }});
    observer.observe(node(place), {{ subtree: true, childList: true, characterData: true, attributes: true }});
    setTimeout(() => fail(new Error("nothing changed")), 10000);
  }});
}}"""

# The slider is dragged: it jumps to another position and tells so.
MOVE = f"""async ([place, label, move]) => {{
  {PAINTED}
  const named = (input) => input.labels[0].textContent.includes(label);
  const input = [...node(place).querySelectorAll("input[type=range]")].find(named);
  const last = +input.max, before = input.value;
  input.value = (move * 5 + 1) % (last + 1);
  if (input.value === before) input.value = (+before + 1) % (last + 1);
  const start = performance.timeOrigin + performance.now();
  let changed = false;
  const observer = new MutationObserver(() => {{ changed = true; }});
  observer.observe(node(place), {{ subtree: true, childList: true, characterData: true, attributes: true }});
  input.dispatchEvent(new Event("input", {{ bubbles: true }}));
  const end = await painted();
  observer.disconnect();
  if (!changed) throw new Error(`moving ${{label}} changed nothing`);
  return end - start;
}}"""

# A pointer that is pressed and moves once each animation frame: the work of the frame, without the wait for the screen.
STROKE = """
const stroke = async (place, plot, at) => {
  const cell = window.courseNotebook.content.widgets[place].node;
  cell.scrollIntoView({ block: "center" });
  await new Promise((done) => setTimeout(done, 500));
  const svg = cell.querySelector(plot), box = svg.getBoundingClientRect(), times = [];
  const event = (share) => ({ ...at(box, share), pointerId: 1, bubbles: true, button: 0 });
  svg.setPointerCapture = () => {}; // there is no such pointer
  svg.dispatchEvent(new PointerEvent("pointerdown", event(0)));
  for (let move = 1; move <= 120; move++) {
    times.push(await new Promise((done) => requestAnimationFrame(() => {
      const start = performance.now(), channel = new MessageChannel();
      svg.dispatchEvent(new PointerEvent("pointermove", event(move / 120)));
      channel.port1.onmessage = () => done(performance.now() - start);
      channel.port2.postMessage(0);
    })));
  }
  svg.dispatchEvent(new PointerEvent("pointerup", event(1)));
  return [svg, times];
};
"""

# A stroke to and fro over all places.
DRAW = f"""async (place) => {{
  {STROKE}
  const [svg, times] = await stroke(place, "svg.course-guess-plot", (box, share) => ({{
    clientX: box.x + 56 + (box.width - 74) * Math.abs(1 - 2 * share),
    clientY: box.y + box.height * (0.5 + 0.35 * Math.sin(20 * share)) }}));
  if (svg.querySelector(".course-guess-open")) throw new Error("the stroke left a place out");
  return times;
}}"""

# The tip of a query, three times around.
DRAG = f"""async (place) => {{
  {STROKE}
  const said = () => window.courseNotebook.content.widgets[place].node.querySelector(".course-plane-said").textContent;
  const before = said(), [, times] = await stroke(place, "svg.course-plane-plot", (box, share) => ({{
    clientX: box.x + box.width * (0.5 + 0.4 * Math.cos(19 * share)),
    clientY: box.y + box.height * (0.5 + 0.4 * Math.sin(19 * share)) }}));
  if (said() === before) throw new Error("the query stayed");
  return times;
}}"""

CLOCK = "() => performance.timeOrigin + performance.now() - Date.now()"


if __name__ == "__main__":
    main()
