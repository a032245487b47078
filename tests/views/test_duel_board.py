"""The board of a test: what it refuses, says and draws."""

import pytest
from as_page import on_page

from course_utils.views import DuelBoard


def tile(right, held, name="a name", message="What was wrong.", hints=("First.", "Second.")):
    return {"right": right, "held": held, "name": name, "message": message, "hints": list(hints)}


BOARD = [tile(True, True, "in loops"), tile(True, False, "in float32"), tile(False, True, "no scale")]
BOARD += [tile(False, False, "secret", "It is secret.")]


def test_it_counts_and_says_that_nothing_counts_while_a_right_one_is_condemned():
    message = "1 of 2 wrong ones caught, 1 of 2 right ones kept."
    assert repr(DuelBoard(BOARD)) == message + " As long as a right one is rejected, nothing counts."
    assert repr(DuelBoard([BOARD[0], *BOARD[2:]])) == "1 of 2 wrong ones caught, 1 of 1 right ones kept."
    assert DuelBoard(BOARD).alt().startswith("Board of a test. 1 of 2 wrong ones caught")


def test_of_what_got_away_the_page_is_sent_hints_alone():
    tiles = on_page(DuelBoard(BOARD)).tiles
    assert [each["number"] for each in tiles] == [1, 2, 1, 2]
    assert tiles[3]["hints"] == ["First.", "Second."] and "secret" not in str(tiles)
    assert tiles[2]["message"] == "What was wrong." and tiles[2]["hints"] == []


@pytest.mark.parametrize(
    ("tiles", "message"),
    [
        ([], "tiles is empty"),
        (["a"], "tile 1 is no dict"),
        ([tile(True, True), tile(1, True)], 'tile 2: "right" has to be a bool'),
        ([{**tile(True, True), "hints": "a hint"}], 'tile 1: "hints" has to be a list'),
        ([{"right": True}], 'tile 1: "held" has to be a bool'),
    ],
)
def test_what_is_no_board_is_refused(tiles, message):
    with pytest.raises(ValueError, match=message):
        DuelBoard(tiles)


def test_the_picture_holds_all_tiles():
    fig = DuelBoard([tile(True, True)] * 12 + [tile(False, i % 2 == 0) for i in range(33)]).figure()
    assert len(fig.axes[0].patches) == 45
    texts = [text.get_text() for text in fig.axes[0].texts]
    assert texts.count("caught") == 17 and texts.count("?") == 16 and texts.count("kept") == 12
