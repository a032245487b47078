"""The glossary: every entry has a place in a lesson, and its links leave a lesson's text as it was."""

import functools
import re
from collections import Counter

import pytest
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

from course_utils.errors import CourseError
from course_utils.site import glossary
from course_utils.site.glossary import Cell, Lesson, add_meanings, glossary_page, link_terms, read_entries, symbols_of
from course_utils.site.mathml import plain_formula

TEXT = glossary.SOURCE.read_text(encoding="utf-8")
taught = functools.cache(glossary.lessons_of)
terms = functools.cache(lambda: glossary.entries(TEXT, taught()))
TARGET = "glossary:"
LINK = re.compile(rf'<a href="{TARGET}#([^"]+)">(.*?)</a>', re.DOTALL)
SMALL = """
```{glossary}
head
  One run of attention.

.. also: key/value heads, `F.sdpa`
.. not: arrow key
key
  How a token is found.

key value store
  Something long.

.. days: 2
page
  A block of slots.
```

```{glossary}
.. days: 1
$m$, how many
  Keys.

.. days: 2
$m$, so far
  A score.

$d_\\text{head}$
  Numbers.
```
"""
RENDER = MarkdownIt("commonmark").enable("table").use(dollarmath_plugin)


CONFIGURATION = """
extensions = ["myst_parser"]
myst_enable_extensions = ["dollarmath"]
myst_url_schemes = {"https": None, "glossary": {"url": "index.html#{{fragment}}", "classes": ["course-term"]}}
"""


def lesson(*texts, day=1):
    return Lesson(day, f"day{day}_x", tuple(Cell(2 * place, text) for place, text in enumerate(texts)))


def link(text, day=1):
    return link_terms([text], read_entries(SMALL), "G", day)[0]


# The course's own glossary


def test_every_entry_of_the_course_has_a_first_use_where_its_lesson_says_the_word():
    cells = {(each.notebook, cell.place): cell.text for each in taught() for cell in each.cells}
    for entry in terms():
        at = entry.first
        text = cells[at.notebook, at.cell]
        bare = [spelling.strip("$`")[:2] for spelling in entry.spellings]
        assert any(start.lower() in text.lower() for start in bare), entry
        assert at.part and at.heading and (not entry.days or at.day in entry.days)
        assert at.part != "References"


def test_terms_come_first_each_part_is_in_order_and_no_definition_is_long():
    symbols = [entry.symbol for entry in terms()]
    assert symbols == sorted(symbols)
    for kind in (False, True):
        order = [
            entry.anchor.removeprefix("term-").replace("-", " ").casefold() for entry in terms() if entry.symbol is kind
        ]
        plain = [name for name in order if name != "p"]  # μP stands under m
        assert [name for name in plain if kind or name[0].isalpha()] == plain
    for entry in terms():
        assert entry.definition.endswith((".", ".)", "$.")), entry.term
        assert 1 <= len(re.findall(r"[.)]+(?:\s|$)", re.sub(r"\$.*?\$", "", entry.definition))) <= 3, entry.term
        assert len(entry.definition.split()) <= 55, entry.term


def test_on_no_day_does_one_spelling_mean_two_things():
    for day in (each.day for each in taught()):
        spellings = Counter(
            spelling for entry in terms() if entry.means_this_on(day) for spelling in set(entry.spellings)
        )
        assert [spelling for spelling, times in spellings.items() if times > 1] == []
    anchors = [entry.anchor for entry in terms()]
    assert len(set(anchors)) == len(anchors)


def test_links_change_nothing_in_a_lesson_but_the_words_that_they_are_on():
    for each in taught():
        texts = [cell.text for cell in each.cells]
        pages = link_terms(texts, terms(), TARGET, each.day)
        rendered = [RENDER.render(text) for text in pages]
        anchors = [anchor for text in rendered for anchor, _ in LINK.findall(text)]
        assert len(anchors) == len(set(anchors)) == "".join(pages).count(f"]({TARGET}#"), each.notebook
        assert len(anchors) > 20, each.notebook
        for before, after in zip(texts, rendered, strict=True):
            assert LINK.sub(r"\2", after) == RENDER.render(before), each.notebook
        on_page = {entry.anchor for entry in terms() if entry.first.day == each.day and not entry.symbol}
        missing = on_page - set(anchors)
        assert len(missing) <= 2, (each.notebook, missing)  # where it stands in headings and code alone


def test_a_page_that_sphinx_makes_has_every_anchor_and_links_lead_there(tmp_path):
    pytest.importorskip("sphinx")
    from sphinx.application import Sphinx

    (tmp_path / "conf.py").write_text(CONFIGURATION)
    toctree = "\n```{toctree}\nlesson\n```\n"
    glossary = glossary_page(TEXT, terms(), lambda place: f"Day {place.day}, {place.part}")
    (tmp_path / "index.md").write_text(glossary + toctree)
    (tmp_path / "lesson.md").write_text(link_terms(["# A lesson\n\nA head."], terms(), "glossary:", 1)[0])
    warnings = tmp_path / "warnings"
    with warnings.open("w") as stream:
        app = Sphinx(tmp_path, tmp_path, tmp_path / "out", tmp_path / "trees", "html", status=None, warning=stream)
        app.build()
    assert warnings.read_text() == ""
    html = (tmp_path / "out" / "index.html").read_text()
    for entry in terms():
        assert f'<dt id="{entry.anchor}">' in html, entry.term
    assert html.count("<p>Day ") == len(terms())
    assert "also:" not in html and "not:" not in html
    lesson_html = (tmp_path / "out" / "lesson.html").read_text()
    assert re.search(r'<a class="[^"]*" href="index.html#term-head">head</a>', lesson_html)


@pytest.mark.parametrize(
    ("latex", "plain"),
    [
        (r"e^{s-m}", "e^(s−m)"),
        (r"q \cdot k = q_1 k_1 + q_2 k_2 + \dots", "q·k = q₁k₁ + q₂k₂ + …"),
        (r"l = \sum_x e^{x-m}", "l = ∑ₓe^(x−m)"),
        (r"1/\sqrt{d_k}", "1/√dₖ"),
        (r"d_\text{head}", "d_head"),
        (r"QK^\top, 2^{10}", "QKᵀ, 2¹⁰"),
        (r"2 \log p_i", "2 log pᵢ"),
        (r"\frac{a + b}{2}", "(a+b)/2"),
        (r"\begin{pmatrix} 1 & 0 \\ 0 & 1 \end{pmatrix}", "(1 0; 0 1)"),
    ],
)
def test_a_formula_can_be_read_in_a_line_of_text(latex, plain):
    assert plain_formula(latex) == plain


def test_a_link_tells_the_meaning_in_plain_text():
    text = add_meanings("A [head](G#term-head).", read_entries(SMALL), "G")
    assert text == 'A [head](G#term-head "One run of attention.").'
    quoted = read_entries(
        '```{glossary}\nsaid\n  It says "$\\\\sqrt{d_k}$" and `a\\\\b`, *twice*.\n```\n'.replace("\\\\", "\\")
    )
    assert quoted[0].meaning == 'It says "√dₖ" and a\\b, twice.'
    rendered = RENDER.render(add_meanings("[said](G#term-said)", quoted, "G"))
    assert 'title="It says &quot;√dₖ&quot; and a\\b, twice."' in rendered
    for entry in terms():
        assert not re.search(r"[$*`]|\\[a-z]", entry.meaning), entry.term


# How it is read


def test_a_spelling_is_looked_for_where_it_belongs_and_as_a_whole_word():
    text = "## One\n\nThe monkey is no header, `key` and $key$ neither.\n\n### Two\n\nA **key** with $d_{head}$."
    small = read_entries(SMALL)
    where = {}
    for entry in glossary.entries(
        SMALL, [lesson(text, "## Three\n\nA head. Key value stores. $m$"), lesson("page $m$", day=2)]
    ):
        where[entry.term] = (entry.first.day, entry.first.cell, entry.first.part, entry.first.heading)
    assert where["key"] == (1, 0, "One", "Two")
    assert where["$d_\\text{head}$"] == (1, 0, "One", "Two")
    assert where["head"] == where["key value store"] == (1, 2, "Three", "Three")
    assert where["page"][0] == where["$m$, so far"][0] == 2
    assert where["$m$, how many"][0] == 1
    assert [entry.anchor for entry in small][-2:] == ["term-m-so-far", "term-d_-text-head"]


def test_a_use_in_code_counts_where_the_glossary_says_so():
    lessons = [lesson("Call `F.sdpa(q)`."), lesson("head, key value store, page, $m$, $d_{head}$", day=2)]
    with pytest.raises(CourseError, match=r"no lesson uses '\$m\$, how many'"):
        glossary.entries(SMALL, lessons)
    first = {e.term: e.first.day for e in glossary.entries(SMALL, [lesson("$m$", "Call `F.sdpa(q)`."), lessons[1]])}
    assert (first["key"], first["head"]) == (1, 2)


def test_a_word_in_a_list_of_papers_is_no_use_of_it():
    with pytest.raises(CourseError, match="no lesson uses"):
        glossary.entries("```{glossary}\nkey\n  A word.\n```\n", [lesson("## References\n\n- A key paper")])


@pytest.mark.parametrize(
    ("formula", "symbols"),
    [
        ("QK^\\top", ["Q", "K", "^", "\\top"]),
        ("d_\\text{head}", ["d_head"]),
        ("d_{head}", ["d_head"]),
        ("nm\\,d_k", ["n", "m", "\\,", "d_k"]),
        ("\\text{softmax}(s)", ["\\text{softmax}", "(", "s", ")"]),
        ("dX + d_v", ["dX", "+", "d_v"]),
        ("e^{s - m_\\text{old}}", ["e", "^", "{", "s", "-", "m_old", "}"]),
    ],
)
def test_a_formula_is_its_symbols(formula, symbols):
    assert symbols_of(formula) == tuple(symbols)


@pytest.mark.parametrize(
    ("block", "complaint"),
    [
        ("head\nNo indent.", "glossary:2: not an entry"),
        ("head", "not an entry"),
        (".. see: x\nhead\n  A.", "glossary:2: a comment is none"),
        ("head\n  A.\n\nhead\n  B.", "glossary:5: 'head' is there twice"),
    ],
)
def test_a_badly_formed_glossary_is_refused_with_its_line(block, complaint):
    with pytest.raises(CourseError, match=re.escape(complaint)):
        read_entries(f"```{{glossary}}\n{block}\n```\n")


# What is linked


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("A head and a head.", "A [head](G#term-head) and a head."),
        ("Heads\nfirst", "[Heads](G#term-head)\nfirst"),
        ("the **key**", "the **[key](G#term-key)**"),
        ("## The key\n\nA key", "## The key\n\nA [key](G#term-key)"),
        ("`key` $key$ key", "`key` $key$ [key](G#term-key)"),
        ("[a key](x) key", "[a key](x) [key](G#term-key)"),
        ('<a title="key">key</a> key', '<a title="key">key</a> [key](G#term-key)'),
        ("<kbd>key</kbd> key", "<kbd>key</kbd> [key](G#term-key)"),
        ("<details><summary>A key</summary>\n\nkey\n\n</details>", None),
        ("press an arrow key, then a key", "press an arrow key, then a [key](G#term-key)"),
        ("a key\nvalue store", "a [key\nvalue store](G#term-key-value-store)"),
        ("| a | key |\n|---|---|\n| 1 | 2 |", "| a | [key](G#term-key) |\n|---|---|\n| 1 | 2 |"),
        ("```python\nkey = 1\n```\n\n$$key$$", "```python\nkey = 1\n```\n\n$$key$$"),
        ("![a key](x.png)", "![a key](x.png)"),
        ("keyhole, low-key, page", "keyhole, low-key, page"),
        ("## References\n\nA key", "## References\n\nA key"),
    ],
)
def test_a_first_use_is_linked_in_text_alone(text, result):
    after = "<details><summary>A key</summary>\n\n[key](G#term-key)\n\n</details>"
    assert link(text) == (after if result is None else result)


def test_a_page_links_a_word_once_and_only_on_days_on_which_it_means_this():
    assert link_terms(["no", "a key", "a key"], read_entries(SMALL), "G", 1) == ["no", "a [key](G#term-key)", "a key"]
    assert link("a page") == link("a page", day=None) == "a page"
    assert link("a page", day=2) == "a [page](G#term-page)"
