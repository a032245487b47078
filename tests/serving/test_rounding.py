"""What company does to a text: nothing in 32 bits on the machine of the record, and something in 16."""

import pytest
import torch

from course_utils.models import real
from course_utils.serving import rounding

HERE = pytest.mark.skipif(bool(real.missing()), reason="the real model is not here: make model")


def test_the_record_has_each_prompt_in_both_sizes_and_its_summary_says_whose_texts_agree():
    rows = rounding.recorded()["rows"]
    assert [(row["dtype"], row["prompt"]) for row in rows] == [
        (dtype, prompt) for dtype in rounding.DTYPES for prompt in rounding.PROMPTS
    ]
    same = {dtype: sum(row["differs"] is None for row in rows if row["dtype"] == dtype) for dtype in rounding.DTYPES}
    assert same["float32"] == 8 > same["bfloat16"]
    assert all((row["alone"] == row["together"]) == (row["differs"] is None) for row in rows)
    assert f"bfloat16  {same['bfloat16']} of 8 texts" in rounding.summary()


@HERE
def test_two_prompts_in_company_write_in_32_bits_what_each_writes_alone():
    rows = rounding.measure(real.load(torch.float32), "float32", rounding.PROMPTS[:2], new=3)
    assert [row["differs"] for row in rows] == [None, None]
    assert rows[0]["alone"] == rows[0]["together"] != ""
