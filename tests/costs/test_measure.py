"""Timing with a clock of our own, peak memory in fresh processes, and results as files. Nothing here times anything."""

import json
import math
import os
import runpy
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from in_process import script

from course_utils.costs import records
from course_utils.costs.measure import (
    Timing,
    environment,
    growth_exponent,
    overtakes_from,
    peak_memory,
    ratio,
    time_call,
    time_together,
)
from course_utils.errors import CourseError

MB = 10**6


class Clock:
    """A clock that stands still, and moves on when a function made by `taking` is called."""

    def __init__(self):
        self.now = 0.0
        self.called = []

    def __call__(self):
        return self.now

    def taking(self, name, *durations):
        """A function that takes these durations in turn, and the last of them from then on."""
        durations = list(durations)

        def function():
            self.called.append(name)
            self.now += durations.pop(0) if len(durations) > 1 else durations[0]

        return function


def test_warm_up_calls_are_made_and_not_counted():
    clock = Clock()
    slow_at_first = clock.taking("f", 100, 50, 1, 2, 3)
    timing = time_call(slow_at_first, repeats=3, warmup=2, clock=clock)
    assert timing.samples == (1, 2, 3)
    assert len(clock.called) == 5
    assert (timing.median, timing.low, timing.high, timing.repeats) == (2, 1.5, 2.5, 3)


def test_a_single_measurement_is_its_own_median_and_quartiles():
    clock = Clock()
    assert time_call(clock.taking("f", 4), repeats=1, warmup=0, clock=clock) == Timing(4, 4, 4, (4,))


def test_several_calls_count_as_one_measurement_of_their_mean():
    clock = Clock()
    timing = time_call(clock.taking("f", 1, 3, 5, 7), repeats=2, warmup=0, calls=2, clock=clock)
    assert timing.samples == (2, 6)


def test_functions_take_turns_and_every_other_round_goes_in_reverse():
    clock = Clock()
    functions = {name: clock.taking(name, 1) for name in "abc"}
    time_together(functions, repeats=3, warmup=1, clock=clock)
    assert "".join(clock.called) == "abc" + "abc" + "cba" + "abc"


def test_a_drift_that_hits_all_alike_leaves_the_ratio_alone():
    clock = Clock()
    drift = (1, 10, 3, 7)  # the machine is 10 times slower in the second round
    functions = {"one": clock.taking("one", *drift), "twice": clock.taking("twice", *(2 * x for x in drift))}
    timings = time_together(functions, repeats=4, warmup=0, clock=clock)
    assert ratio(timings["twice"], timings["one"]) == Timing(2, 2, 2, (2, 2, 2, 2))
    assert ratio(timings["one"], timings["twice"]).median == 0.5


def test_ratios_of_different_rounds_are_refused():
    with pytest.raises(ValueError, match="2 rounds against 3"):
        ratio(Timing.of([1, 2]), Timing.of([1, 2, 3]))


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"repeats": 0}, "repeats is 0: it must be at least 1"),
        ({"warmup": -1}, "warmup is -1: it must be at least 0"),
        ({"calls": 0}, "calls is 0: it must be at least 1"),
        ({"device": "tpu"}, 'device is \'tpu\': it must be "cpu" or "cuda"'),
    ],
)
def test_counts_and_devices_that_make_no_sense_are_refused_before_anything_runs(arguments, message):
    clock = Clock()
    with pytest.raises(ValueError, match=message):
        time_call(clock.taking("f", 1), clock=clock, **arguments)
    assert clock.called == []


def test_nothing_to_time_is_refused():
    with pytest.raises(ValueError, match="functions is empty"):
        time_together({})


def test_a_gpu_that_is_not_there_is_named():
    import torch

    if torch.cuda.is_available():
        pytest.skip("a GPU is there")
    with pytest.raises(RuntimeError, match='use device="cpu"'):
        time_call(lambda: None, device="cuda")
    with pytest.raises(RuntimeError, match='use device="cpu"'):
        peak_memory(touch, 1, device="cuda:0")
    with pytest.raises(RuntimeError, match='use device="cpu"'):
        environment("cuda")


@pytest.mark.parametrize("device", ["gpu", "mps", "cudagraph", ""])
def test_a_device_that_cannot_be_measured_is_refused_everywhere_alike(device):
    message = f'device is {device!r}: it must be "cpu" or "cuda"'

    def run():
        pytest.fail("it ran")

    for measured in (time_call, peak_memory):
        with pytest.raises(ValueError, match=message):
            measured(run, device=device)
    with pytest.raises(ValueError, match=message):
        time_together({"f": run}, device=device)
    with pytest.raises(ValueError, match=message):
        environment(device)


class FakeEvent:
    """A CUDA event on a GPU that works off its queue only when waited for: one millisecond a call."""

    queue, now = [], 0.0

    def __init__(self, enable_timing):
        assert enable_timing
        self.at = None

    def record(self):
        FakeEvent.queue.append(self)

    def synchronize(self):
        for one in FakeEvent.queue:
            if one == "call":
                FakeEvent.now += 1.0
            else:
                one.at = FakeEvent.now
        FakeEvent.queue.clear()

    def elapsed_time(self, other):
        return other.at - self.at


@pytest.fixture
def fake_gpu(monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "Event", FakeEvent)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    return torch.cuda


def test_a_gpu_is_timed_by_its_events_after_waiting_for_it(fake_gpu):
    timing = time_call(lambda: FakeEvent.queue.append("call"), repeats=3, warmup=2, calls=4, device="cuda:0")
    assert timing.samples == pytest.approx((1e-3, 1e-3, 1e-3))


def test_peak_memory_on_a_gpu_is_the_allocators_over_what_was_there(fake_gpu, monkeypatch):
    held = {"now": 700, "peak": 9999}
    monkeypatch.setattr(fake_gpu, "memory_allocated", lambda device: held["now"])
    monkeypatch.setattr(fake_gpu, "max_memory_allocated", lambda device: held["peak"])
    monkeypatch.setattr(fake_gpu, "reset_peak_memory_stats", lambda device: held.update(peak=held["now"]))

    def allocate(amount):
        held.update(peak=max(held["peak"], held["now"] + amount))

    assert peak_memory(allocate, 50, device="cuda") == 50  # and no fresh process, where allocate could not be found


# --- peak memory ----------------------------------------------------------------------------------------------------


def touch(megabytes):
    return np.ones(megabytes * MB, dtype=np.uint8)


def touch_and_forget(megabytes):
    touch(megabytes)
    return None


def touch_in_turn(megabytes, times):
    for _ in range(times):
        touch(megabytes)


def add_one_to(block):
    return block + np.uint8(1)


def block_of(megabytes):
    return (touch(megabytes),)


def fail(words):
    raise ValueError(words)


def vanish():
    os._exit(3)


def wait():
    threading.Event().wait()


def test_a_function_that_fills_100_mb_grows_by_about_that():
    assert 99 * MB < peak_memory(touch, 100) < 115 * MB


def test_what_is_freed_before_the_end_counts_and_what_is_used_again_counts_once():
    assert 99 * MB < peak_memory(touch_and_forget, 100) < 115 * MB
    assert 99 * MB < peak_memory(touch_in_turn, 100, 3) < 115 * MB


def test_inputs_that_are_prepared_do_not_count():
    assert 49 * MB < peak_memory(add_one_to, 50, prepare=block_of) < 65 * MB


def test_an_earlier_peak_hides_nothing():
    if sys.platform != "linux":
        pytest.skip("the peak cannot be reset on this system")
    assert 49 * MB < peak_memory(touch, 50, rehearse=(100,)) < 65 * MB


def test_a_failure_in_the_other_process_comes_back_with_its_message():
    with pytest.raises(RuntimeError, match="fail failed in its own process: ValueError: too wide"):
        peak_memory(fail, "too wide")


def test_a_process_that_ends_without_a_word_is_reported():
    with pytest.raises(RuntimeError, match="vanish ended its process with exit code 3"):
        peak_memory(vanish)


def test_a_process_that_takes_too_long_is_ended():
    with pytest.raises(TimeoutError, match=r"wait did not end within 0\.01 s"):
        peak_memory(wait, timeout=0.01)


def test_functions_and_arguments_that_cannot_be_sent_are_refused():
    for typed in (lambda: None, partial(lambda: None)):
        with pytest.raises(
            ValueError, match=r"<lambda> cannot be sent .* define it at the top .* %%writefile mine\.py"
        ):
            peak_memory(typed)
    with pytest.raises(ValueError, match="cannot be sent to a fresh process"):
        peak_memory(touch, 1, prepare=lambda n: (n,))
    with pytest.raises(ValueError, match="touch or its arguments cannot be sent"):
        peak_memory(touch, (x for x in ()))


class Unsendable:
    def __reduce__(self):
        raise TypeError("x" * 10**6)


def test_what_goes_wrong_is_reported_without_whole_arrays():
    million = np.zeros(10**6)
    with np.printoptions(threshold=10**9), pytest.raises(RuntimeError, match=r"^fail failed .* ValueError: ") as caught:
        peak_memory(partial(fail, million), device="cpu")
    assert len(str(caught.value)) < 400
    with pytest.raises(RuntimeError, match=r"^fail failed in its own process: ValueError: xxx") as caught:
        peak_memory(fail, "x" * 10**6)
    assert len(str(caught.value)) < 400
    with pytest.raises(ValueError, match=r"^touch or its arguments cannot be sent") as caught:
        peak_memory(partial(touch, million), Unsendable())
    assert len(str(caught.value)) < 400


def test_a_function_typed_in_a_notebook_is_refused_and_told_what_to_do(monkeypatch):
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)
    monkeypatch.setattr(vanish, "__module__", "__main__")
    for typed in (vanish, partial(vanish)):
        with pytest.raises(ValueError, match=r"^vanish cannot be sent .*%%writefile mine\.py .* import it"):
            peak_memory(typed)


# --- findings -------------------------------------------------------------------------------------------------------


def test_the_growth_exponent_is_the_power():
    sizes = [2**i for i in range(8, 13)]
    for power in (0, 1, 1.5, 2):
        assert growth_exponent(sizes, [7 * size**power for size in sizes]) == pytest.approx(power)
    for sizes, amounts in (([1, 1], [2, 3]), ([1, 2], [0, 1]), ([], [])):
        with pytest.raises(ValueError, match="two different sizes"):
            growth_exponent(sizes, amounts)


def test_overtaking_is_where_it_stays_in_front():
    sizes = [1, 2, 4, 8]
    assert overtakes_from(sizes, [5, 5, 5, 5], [1, 6, 6, 6]) == 2
    assert overtakes_from(sizes, [5, 5, 5, 5], [6, 1, 6, 6]) == 4  # the lead at 1 was lost
    assert overtakes_from(sizes, [5, 5, 5, 5], [6, 6, 6, 6]) == 1
    assert overtakes_from(sizes, [5, 5, 5, 5], [6, 6, 6, 5]) is None


def test_the_environment_names_device_versions_and_date_but_not_the_machine():
    result = environment()
    assert {"device", "cpu", "cores", "threads", "load", "python", "torch", "triton", "numpy", "date"} <= set(result)
    assert result["python"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}")
    assert result["date"].startswith("20") and result["date"].endswith("+00:00") and "T" in result["date"]
    import platform

    assert platform.node() not in [str(value) for value in result.values()]
    json.dumps(result)


# --- results as files -----------------------------------------------------------------------------------------------

WHERE = {"device": "AMD EPYC (2 cores)", "date": "2026-11-21T07:00:00+00:00"}


def test_a_result_is_read_as_it_was_written(tmp_path):
    rows = [{"T": 512, "ratio": 1.25, "name": "tiled"}, {"T": 1024, "ratio": 1234.5, "name": "“naive”"}]
    path = records.write("attention-cpu", WHERE, {"repeats": 3}, rows, ["It is faster."], folder=tmp_path / "new")
    assert path.name == "attention-cpu-amd-epyc-2-cores.json"
    assert records.read(path) == {
        "schema": 1,
        "benchmark": "attention-cpu",
        "environment": WHERE,
        "settings": {"repeats": 3},
        "rows": rows,
        "findings": ["It is faster."],
    }


def test_a_row_takes_a_line_and_a_float_six_digits(tmp_path):
    path = records.write("attention", WHERE, {}, [{"x": 1 / 3}, {"x": 2}], ["One.", "Two."], folder=tmp_path)
    assert '  {"x": 0.333333},\n  {"x": 2}\n' in path.read_text()
    records.write("attention", WHERE, {}, [], [], folder=tmp_path)  # replaces it
    assert records.read(path)["rows"] == records.read(path)["findings"] == []


@pytest.mark.parametrize("benchmark", ["attention-cpu", "generation-cpu"])
def test_findings_are_reported_in_lines_that_break_between_words(benchmark):
    result = records.recorded(benchmark)[0]
    lines = records.describe_findings(result).split("\n")
    assert " ".join(line.removeprefix("  ") for line in lines) == " ".join(result["findings"])
    assert sum(not line.startswith("  ") for line in lines) == len(result["findings"])
    assert max(map(len, lines)) <= records.COLUMNS
    assert not any(line.strip().startswith("=") or line.endswith("=") for line in lines)


def test_results_of_two_devices_do_not_clash_and_the_newest_comes_first(tmp_path):
    later = {"device": "another", "date": "2026-12-01T00:00:00+00:00"}
    for where in (WHERE, later):
        records.write("attention", where, {}, [], [], folder=tmp_path)
    records.write("attention-gpu", later, {}, [], [], folder=tmp_path)
    assert [one["environment"]["device"] for one in records.recorded("attention", tmp_path)] == [
        "another",
        "AMD EPYC (2 cores)",
    ]
    assert records.recorded("nothing", tmp_path) == []


def test_a_quick_run_replaces_no_full_one_and_is_not_read_as_one(tmp_path):
    full = records.write("attention", WHERE, {"quick": False}, [{"x": 1}], [], folder=tmp_path)
    quick = records.write("attention", WHERE, {"quick": True}, [{"x": 2}], [], folder=tmp_path)
    assert (full.name, quick.name) == ("attention-amd-epyc-2-cores.json", "attention-amd-epyc-2-cores-quick.json")
    assert records.read(full)["rows"] == [{"x": 1}] and records.read(quick)["rows"] == [{"x": 2}]
    assert [result["rows"] for result in records.recorded("attention", tmp_path)] == [[{"x": 1}]]


def test_numbers_of_numpy_and_torch_are_written_as_numbers(tmp_path):
    import torch

    row = {"a": np.float32(1.25), "b": np.int64(3), "c": torch.tensor(0.5), "d": torch.tensor([7]), "e": np.True_}
    settings = {"sizes": (np.int32(1), 2), "deep": {"third": np.float64(1 / 3)}}
    path = records.write("attention", WHERE, settings, [row], [], folder=tmp_path)
    result = records.read(path)
    assert result["rows"] == [{"a": 1.25, "b": 3, "c": 0.5, "d": 7, "e": True}]
    assert result["settings"] == {"sizes": [1, 2], "deep": {"third": 0.333333}}


@pytest.mark.parametrize(
    "rows, settings, error, message",
    [
        (
            [{"ratio": 1.0}, {"ratio": math.nan}],
            {},
            ValueError,
            r"rows\[1\]\['ratio'\] is nan, which JSON does not have",
        ),
        ([{"ratio": np.float32("inf")}], {}, ValueError, r"rows\[0\]\['ratio'\] is inf"),
        ([], {"rates": [1.0, -math.inf]}, ValueError, r"settings\['rates'\]\[1\] is -inf"),
        ([{"x": np.zeros(3)}], {}, TypeError, r"rows\[0\]\['x'\] is a ndarray: give one number"),
        ([{"x": Path("x")}], {}, TypeError, r"rows\[0\]\['x'\] is a (Posix|Windows)Path"),
        ([], {"dtype": np.float32}, TypeError, r"settings\['dtype'\] is a type"),
        ([{"x": 1}, ("x", 1)], {}, ValueError, r"rows\[1\] is a tuple: each row is a dict"),
    ],
)
def test_what_json_does_not_have_is_named_and_nothing_is_written(rows, settings, error, message, tmp_path):
    with pytest.raises(error, match=message):
        records.write("attention", WHERE, settings, rows, [], folder=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_what_ships_would_be_written_as_it_is(tmp_path):
    for path in records.RECORDED.glob("*.json"):
        old = records.read(path)
        del old["schema"]
        written = records.write(**old, folder=tmp_path)
        assert (written.name, written.read_text(encoding="utf-8")) == (path.name, path.read_text(encoding="utf-8"))


def test_a_file_that_is_no_result_is_named(tmp_path):
    for text, message in (
        ("{", "odd.json is not JSON"),
        ("{}", "odd.json is not a result of schema 1"),
        ("5", "odd.json is not a result of schema 1"),
    ):
        (tmp_path / "odd.json").write_text(text)
        with pytest.raises(ValueError, match=message):
            records.read(tmp_path / "odd.json")


def naive_rows(full, causal):
    """Rows of naive attention at T = 512 as benchmarks/attention.py writes them, from quartiles in milliseconds."""
    for with_mask, quartiles in ((False, full), (True, causal)):
        row = {"measured": "time", "causal": with_mask, "T": 512, "implementation": "naive"}
        yield row | dict(zip(("seconds_low", "seconds", "seconds_high"), (ms / 1e3 for ms in quartiles), strict=True))


FULL, TOO_FAST = (11.7188, 13.6826, 13.8307), (9.01093, 9.17036, 9.23259)  # recorded on 2026-11-21, which was refused


def test_a_record_in_which_the_mask_makes_naive_attention_faster_is_refused(tmp_path):
    words = "at T = 512 naive attention takes 9.17 ms with the causal mask and 13.7 ms without, .* measure again"
    rows = list(naive_rows(FULL, TOO_FAST))
    with pytest.raises(CourseError, match=f"^attention-cpu: {words}"):
        records.write("attention-cpu", WHERE, {}, rows, [], folder=tmp_path)
    assert not list(tmp_path.iterdir())
    result = {"schema": 1, "benchmark": "attention-cpu", "environment": WHERE, "settings": {}, "findings": []}
    (tmp_path / "attention-cpu-old.json").write_text(json.dumps(result | {"rows": rows}))
    with pytest.raises(CourseError, match=rf"^attention-cpu-old\.json: {words}"):
        records.recorded("attention-cpu", tmp_path)


@pytest.mark.parametrize(
    ("full", "causal", "settings"),
    [
        (FULL, (14.0, 18.2, 18.9), {}),  # slower, as it should be
        ((1.67484, 3.14914, 3.50866), (2.12496, 2.16068, 2.21153), {}),  # faster, but within the spread
        (FULL, TOO_FAST, {"quick": True}),  # which measures nothing
    ],
)
def test_a_record_is_kept_where_the_mask_costs_time_or_the_spread_hides_it(full, causal, settings, tmp_path):
    path = records.write("attention-cpu", WHERE, settings, naive_rows(full, causal), [], folder=tmp_path)
    assert [row["causal"] for row in records.read(path)["rows"]] == [False, True]


def test_rows_that_differ_in_more_than_the_mask_are_not_compared(tmp_path):
    full, causal = naive_rows(FULL, TOO_FAST)
    for name, other in (("T", 1024), ("d", 128), ("direction", "both")):
        records.check_times("attention-gpu", [full | {name: other}, causal])
        with pytest.raises(CourseError, match="measure again"):
            records.check_times("attention-gpu", [full | {name: other}, causal | {name: other}])


def test_a_benchmark_whose_result_is_refused_ends_with_one_line(tmp_path, monkeypatch, capsys):
    def main(quick, folder):
        records.write("attention-cpu", WHERE, {"quick": quick}, naive_rows(FULL, TOO_FAST), [], folder)

    monkeypatch.setattr(sys, "argv", ["benchmark", "--out", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        records.command_line(main, "What it measures.")
    assert ended.value.code == 2
    message = capsys.readouterr().err
    assert message.startswith("attention-cpu: at T = 512 ") and message.count("\n") == 1


def test_threads_are_read_from_a_list_of_levels_too(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    for message, threads in (("4,2", 4), ("3", 3), ("", os.cpu_count())):
        monkeypatch.setenv("OMP_NUM_THREADS", message)
        assert environment()["threads"] == threads


def test_a_table_lines_up_numbers_on_the_right():
    rows = [{"name": "naive", "T": 512, "s": 0.123456}, {"name": "tiled", "T": 16384, "s": None}]
    assert records.table(rows, {"name": "kernel", "T": "T", "s": "seconds"}) == (
        "kernel       T  seconds\nnaive      512    0.123\ntiled   16,384        –"
    )
    for columns in (None, {"T": "T"}):
        with pytest.raises(ValueError, match="rows is empty"):
            records.table([], columns)


def test_what_ships_can_be_read():
    for path in records.RECORDED.glob("*.json"):
        result = records.read(path)
        assert result["rows"] and result["environment"]["date"], path.name
        assert not result["settings"].get("quick"), path.name


# --- the benchmarks themselves --------------------------------------------------------------------------------------

ROOT = Path(__file__).parents[2]
MEASURED = {
    "attention": {
        "time": {"causal", "T", "implementation", "seconds", "seconds_low", "seconds_high", "faster", "rounds"},
        "memory": {"causal", "T", "implementation", "peak_bytes"},
    },
    "generation": {
        "prefix": {"T", "rounds", "without_seconds", "with_seconds", "faster", "fewer_rows"},
        "kind": {"T", "kind", "n_kv_heads", "batch", "seconds", "faster", "cache_bytes", "smaller", "weight_bytes"},
    },
}


@pytest.mark.parametrize(
    "words, expected",
    [
        ([], (False, records.LOCAL)),
        (["--quick"], (True, records.LOCAL)),
        (["--out", "there"], (False, Path("there"))),
        (["--quick", "--out", "there"], (True, Path("there"))),
        (["--record"], (False, records.RECORDED)),
    ],
)
def test_the_command_line_says_how_and_where(words, expected, monkeypatch):
    called = []
    monkeypatch.setattr(sys, "argv", ["benchmark.py", *words])
    records.command_line(lambda *given: called.append(given), "What it measures.\nAnd how.")
    assert called == [expected]


@pytest.mark.parametrize(
    "words, message",
    [
        (["--quick", "--record"], "--quick measures nothing worth recording"),
        (["--out", "there", "--record"], "not allowed with argument --out"),
    ],
)
def test_a_command_line_that_contradicts_itself_measures_nothing(words, message, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["benchmark.py", *words])
    with pytest.raises(SystemExit) as left:
        records.command_line(lambda *given: pytest.fail("it ran"), "What it measures.")
    assert left.value.code == 2 and message in capsys.readouterr().err


def test_a_peak_of_nothing_says_nothing_of_growth(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))  # the benchmark sets it
    findings = runpy.run_path(str(ROOT / "benchmarks" / "attention.py"))["memory_findings"]

    def rows(name, **peaks):
        return [{"implementation": name, "T": int(T[1:]), "peak_bytes": peak} for T, peak in peaks.items()]

    square = rows("naive", T64=0, T128=3 * 128**2, T256=3 * 256**2)
    (sentence,) = findings([*rows("tiled 64", T64=0, T128=0, T256=4096), *square])
    assert "T^2.00 for naive (197 kB at T = 256)" in sentence and "tiled" not in sentence
    assert findings(rows("naive", T64=0, T128=100)) == findings([]) == []


def test_both_masks_are_timed_in_the_same_rounds(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))  # the benchmark sets it
    measure_times = runpy.run_path(str(ROOT / "benchmarks" / "attention.py"))["measure_times"]
    together = []

    def timed(functions, **options):
        together.append({causal for _, causal in functions})
        return time_together(functions, repeats=1, warmup=0)

    monkeypatch.setitem(measure_times.__globals__, "time_together", timed)
    monkeypatch.setitem(measure_times.__globals__, "settle_allocator", lambda: together.append("settled"))
    rows = measure_times({8: 1, 16: 1})
    assert together == ["settled", {False, True}, {False, True}]  # and the allocator before any
    assert [(row["causal"], row["T"]) for row in rows[::4]] == [(False, 8), (False, 16), (True, 8), (True, 16)]


def as_a_program(path, *arguments):
    run = subprocess.run([sys.executable, path, *arguments], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


WHOLE = pytest.mark.thorough("the benchmark of attention is run whole, at tiny sizes")


# The first starts fresh processes to measure memory, and so it has to be a program of its own.
@pytest.mark.parametrize(
    ("name", "run"), [pytest.param("attention", as_a_program, marks=WHOLE), ("generation", script)]
)
@pytest.mark.usefixtures("one_thread")
def test_a_benchmark_runs_prints_and_writes_its_result(name, run, tmp_path):
    message = run(ROOT / "benchmarks" / f"{name}.py", "--quick", "--out", tmp_path)
    (path,) = tmp_path.iterdir()
    result = records.read(path)
    assert result["benchmark"] == f"{name}-cpu" and path.name.startswith(f"{name}-cpu-")
    assert path.name.endswith("-quick.json")
    assert {"device", "torch", "python", "date", "threads"} <= set(result["environment"])
    assert result["environment"]["threads"] == 1 and result["settings"]["quick"] is True
    for measured, columns in MEASURED[name].items():
        rows = [row for row in result["rows"] if row["measured"] == measured]
        assert rows and all(columns <= set(row) for row in rows), measured
    assert result["findings"] and all(sentence in message for sentence in result["findings"])
    assert str(path) in message


def test_a_run_writes_by_default_where_git_does_not_look():
    ignored = subprocess.run(["git", "check-ignore", "-q", records.LOCAL / "x.json"], cwd=ROOT).returncode
    if ignored == 128:
        pytest.skip("not a git checkout")
    shipped = subprocess.run(["git", "check-ignore", "-q", records.RECORDED / "x.json"], cwd=ROOT).returncode
    assert (ignored, shipped) == (0, 1)
