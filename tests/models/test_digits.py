"""A Vision Transformer on handwritten digits: what it is given, its positions, and what the stored runs say."""

import numpy as np
import pytest
import torch

from course_utils.costs import records
from course_utils.models import digits

pytestmark = pytest.mark.usefixtures("one_thread")


def test_the_pictures_are_real_digits_with_their_licence():
    images, labels = digits.pictures()
    assert images.shape == (1797, 8, 8) and labels.bincount().tolist() == [
        178, 182, 177, 183, 181, 182, 181, 179, 174, 180,
    ]  # fmt: skip
    assert (images.min(), images.max()) == (0, 1)
    licence = (digits.STORED / "digits.LICENSE.txt").read_text(encoding="utf-8")
    assert "CC BY 4.0" in licence and "Nothing was changed" in licence


def test_patches_come_in_reading_order():
    image = torch.arange(64.0).reshape(1, 8, 8)
    assert digits.patches(image)[0, [0, 1, 4]].tolist() == [[0, 1, 8, 9], [2, 3, 10, 11], [16, 17, 24, 25]]


@pytest.mark.parametrize("positions", digits.POSITIONS)
def test_without_positions_alone_the_order_of_patches_is_nothing(positions):
    torch.manual_seed(0)
    model = digits.Model(positions).eval()
    image = torch.rand(1, 8, 8)
    halves_exchanged = torch.cat([image[:, 4:], image[:, :4]], dim=1)
    same = torch.allclose(model(image)[0], model(halves_exchanged)[0], atol=1e-5)
    assert same == (positions == "none")


def test_rows_and_columns_move_a_score_alike_wherever_two_patches_are():
    q, k = torch.randn(2, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    rotated = [digits._rotated(each.expand(1, 1, 17, 16), "row and column")[0, 0, 1:] for each in (q, k)]
    scores = (rotated[0] @ rotated[1].T).reshape(4, 4, 4, 4)  # of the query's row and column, and the key's
    assert torch.allclose(scores[0, 1, 2, 2], scores[1, 2, 3, 3], atol=1e-12)
    assert not torch.allclose(scores[0, 1, 2, 2], scores[0, 1, 2, 3], atol=1e-3)


def test_the_same_seed_gives_the_same_model_and_other_positions_are_refused():
    first, second = (digits.accuracy(digits.train("learned", 1, steps=3)) for _ in range(2))
    assert first == second
    with pytest.raises(ValueError, match="choose one of 'none', 'learned'"):
        digits.train("circular")


def test_what_the_page_says_is_in_the_stored_runs():
    shares = digits.accuracies()
    assert {kind: len(of) for kind, of in shares.items()} == dict.fromkeys(digits.POSITIONS, 5)
    assert max(shares["none"]) < min(min(of) for kind, of in shares.items() if kind != "none")
    for row in digits.recorded()["rows"]:
        weights = np.array(row["attention"])
        assert weights.shape == (digits.SHOWN, 4, 4) and (weights.sum((1, 2)) <= 1.01).all()


@pytest.mark.thorough("experiments are run by their commands")
def test_a_run_is_written_by_the_command_and_can_be_read(tmp_path, capsys):
    digits.main(quick=True, folder=tmp_path)
    (path,) = tmp_path.glob("*.json")
    assert records.read(path)["settings"]["quick"] and str(path) in capsys.readouterr().out
