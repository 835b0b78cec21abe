"""What rows that the original was asked twice can show: no more than so many of them can."""

import numpy as np
import pytest

import ectype as ec
from ectype.certificate.repeats import Repeats
from ectype.errors import EctypeWarning
from ectype.report import model_card


def test_few_repeats_show_little():
    few, many = Repeats(3, 3), Repeats(300, 300)
    assert few.ceiling == many.ceiling == 0.0
    assert few.ceiling_bound() == pytest.approx((1 - 0.05 ** (1 / 3)) ** 0.5)
    assert "no copy can be expected to agree with it on more than 79.5% of rows, with 95% confidence" in few.text
    assert many.ceiling_bound() < 0.11
    assert Repeats(300, 0).text == ""


@pytest.mark.parametrize("n", [3, 20, 200])
def test_the_bound_holds_as_often_as_it_says(n):
    """Of an original two of whose answers to a row agree half of the time."""
    changed = np.random.default_rng(n).binomial(n, 0.5, 2000)
    assert np.mean([Repeats(n, int(k)).ceiling_bound() >= 0.5**0.5 for k in changed]) >= 0.935


def test_a_random_original_is_told_what_three_repeats_can_show(tmp_path):
    rng = np.random.default_rng(3)
    coin = ec.Original(lambda rows: rng.integers(0, 9, len(rows)), list(range(9)), name="coin")
    settings = {"preset": "fast", "budget": 60, "certificate_n": 60, "repeat": 0.02}
    with pytest.warns(EctypeWarning, match=r"with 95% confidence") as caught:
        result = ec.copy_classifier(coin, ec.Space.normal(2), out=tmp_path / "run", **settings)
    assert (result.repeats.n, result.repeats.disagreed) == (3, 3)  # by which the most would be none at all
    page = result.report(tmp_path / "page.html").read_text()
    for said in (str(caught[0].message), " ".join(str(result).split()), page, model_card(tmp_path / "run")):
        assert "can be expected to agree with it on more than 79.5% of rows" in said
