"""What a learner looks at: figures and widgets. Nothing heavy loads until a name is first used.

Widgets are names of this package: `WIDGETS` has the module of each in `widgets`, with its JavaScript and CSS beside it;
what several use lies in `shared`. `picture.picture` and `static_page.static_page` are functions in their modules.
"""

from importlib import import_module

WIDGETS = {
    "AttentionHeatmap": "heatmap",
    "AttentionStepper": "stepper",
    "DecodeStepper": "decoding",
    "DuelBoard": "duel_board",
    "Guess": "guess",
    "Guesses": "guesses",
    "HeadAblation": "ablation",
    "HeadExplorer": "head_explorer",
    "HeadGallery": "gallery",
    "LossLadder": "loss_ladder",
    "MaskPainter": "painter",
    "MemoryBoard": "memory_board",
    "MemoryCalculator": "calculator",
    "MergeStepper": "merges",
    "OnlineSoftmaxStepper": "online_softmax",
    "PageTable": "page_table",
    "Practice": "practice",
    "ProgressMap": "course_map",
    "QueryPlane": "query_plane",
    "Quiz": "quiz",
    "RopeClock": "rope_clock",
    "SaturationExplorer": "saturation",
    "ServingTimeline": "timeline",
    "SpeculativeStepper": "speculative",
    "TemperatureExplorer": "temperature",
    "TileWalker": "tile_walker",
    "TracePlayer": "trace_player",
    "WindowLoss": "window_loss",
}


def __getattr__(name):
    if name == "__all__":
        return sorted(WIDGETS)
    if name not in WIDGETS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.widgets.{WIDGETS[name]}"), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted([*globals(), *WIDGETS])
