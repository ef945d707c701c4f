"""To adversaries who do not know other groups these are noise: there must be as many as proved."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

import pdp_calibrate as pdp

HOME = pdp.CategoryGroup(
    size=3,
    categories=[0, 1, 2],
    # One with 1 has a sum of 3, all others 2 or 4: told apart in the middle, not in the tails.
    count_probabilities={(0, 3, 0): 0.04, (2, 0, 1): 0.48, (1, 0, 2): 0.48},
)
COUPLE = pdp.BinaryGroup(count_probabilities=[0.45, 0.1, 0.45])
TWO = pdp.Blocks(models=[HOME], counts=[2])
WEAKEST, ALL = pdp.Adversaries.weakest(), pdp.Adversaries.all()


def homes(number, *, size=3, highest=2):
    """Return a long frame of this many homes."""
    values = np.arange(number * size) % (highest + 1)
    return pd.DataFrame({"home": np.repeat(np.arange(number), size), "x": values})


def leakage_about_one_member(group, scale, *, others=(0.0,), masses=(1.0,)):
    """Return what one who knows nobody in the group learns of the first member, by brute force.

    `others` are the sums that groups which nobody knows add, and `masses` their probabilities.
    """
    table = group.to_table()
    domain = np.array(table.domains[0], dtype=float)
    sums = sum(np.meshgrid(*[domain] * len(table.names), indexing="ij"))
    cells = np.add.outer(sums.reshape(len(domain), -1), others).reshape(len(domain), -1)
    laws = np.multiply.outer(table.probabilities.reshape(len(domain), -1), masses)
    laws = laws.reshape(len(domain), -1)
    outputs = np.concatenate([np.linspace(-50, 50, 2001), np.unique(cells)])
    with np.errstate(divide="ignore"):
        log_laws = np.log(laws / laws.sum(axis=1, keepdims=True))
    seen = logsumexp(log_laws - np.abs(outputs[:, None, None] - cells) / scale, axis=2)
    return float((seen.max(axis=1) - seen.min(axis=1)).max())


def law_of_the_sum(group):
    """Return what one group can add, and the probability of each."""
    table = group.to_table()
    domain = np.array(table.domains[0], dtype=float)
    sums = sum(np.meshgrid(*[domain] * len(table.names), indexing="ij"))
    return sums.ravel(), table.probabilities.ravel()


def test_noise_of_a_home_that_is_not_there_is_not_counted():
    cal = pdp.calibrate(TWO, pdp.Sum(), epsilon=1.0, adversaries=WEAKEST)
    other, masses = law_of_the_sum(HOME)
    claimed = leakage_about_one_member(HOME, cal.scale, others=other, masses=masses)
    assert claimed == pytest.approx(1.0, abs=1e-6)
    assert leakage_about_one_member(HOME, cal.scale) > 1.25  # about one home it would leak this
    for number in (1, 3):
        with pytest.raises(pdp.ModelError, match=rf"2 of size 3; got {number} of size 3") as found:
            cal.release(homes(number), value="x", by="home")
        assert "Adversaries.weakest()" in str(found.value)
    assert isinstance(cal.release(homes(2), value="x", by="home").value, int)


def test_knowing_some_others_means_less_of_the_own_group_the_more_groups_there_are():
    pairs = pdp.Blocks(models=[COUPLE], counts=[2])
    three = pdp.Adversaries.knowing(at_least=3)
    cal = pdp.calibrate(pairs, pdp.Sum(), epsilon=1.0, adversaries=three)
    assert cal.scale == pytest.approx(1.0)  # of four people, three others are all of them
    # Of a hundred, three others need not be the partner; everyone else's group can be known.
    assert leakage_about_one_member(COUPLE, cal.scale) > 1.7
    with pytest.raises(pdp.ModelError, match=r"2 of size 2; got 50 of size 2"):
        cal.release(homes(50, size=2, highest=1), value="x", by="home")
    fifty = pdp.Blocks(models=[COUPLE], counts=[50])
    right = pdp.calibrate(fifty, pdp.Sum(), epsilon=1.0, adversaries=three)
    assert leakage_about_one_member(COUPLE, right.scale) <= 1.0 + 1e-9
    right.release(homes(50, size=2, highest=1), value="x", by="home")


@pytest.mark.parametrize(
    "adversaries",
    [
        WEAKEST,
        pdp.Adversaries.knowing(at_least=1),
        pdp.Adversaries.knowing(at_most=1),
        pdp.Adversaries.exactly((0, 0), known=[(0, 1)]),
    ],
    ids=repr,
)
def test_every_restricted_set_needs_the_number_of_groups(adversaries):
    assert adversaries.is_restricted
    for query in (pdp.Sum(), [pdp.Sum(), pdp.Count(values={1})]):
        cal = pdp.calibrate(TWO, query, epsilon=1.0, adversaries=adversaries)
        with pytest.raises(pdp.ModelError, match="other groups are noise"):
            cal.release(homes(3), value="x", by="home")
        cal.release(homes(2), value="x", by="home")


@pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")
@pytest.mark.parametrize("adversaries", [ALL, pdp.Adversaries.strongest()], ids=repr)
def test_who_may_know_all_other_groups_does_not_care_how_many_there_are(adversaries):
    assert not adversaries.is_restricted
    cal = pdp.calibrate(TWO, pdp.Sum(), epsilon=1.0, adversaries=adversaries)
    for number in (1, 2, 50):
        cal.release(homes(number), value="x", by="home")


def test_every_size_must_occur_as_often_as_stated():
    model = pdp.Blocks(models=[HOME, pdp.Unknown(size=2, domain=[0, 1, 2])], counts=[2, 1])
    cal = pdp.calibrate(model, pdp.Sum(), epsilon=1.0, adversaries=WEAKEST)
    with pytest.raises(pdp.ModelError, match=r"1 of size 2, 2 of size 3; got 2 of size 3\."):
        cal.release(homes(2), value="x", by="home")
    pair = homes(1, size=2).assign(home=7)
    cal.release(pd.concat([homes(2), pair]), value="x", by="home")


def test_members_of_a_set_are_all_about_the_same_groups():
    other = pdp.Blocks(models=[pdp.Unknown(size=3, domain=[0, 1, 2])], counts=[2])
    both = pdp.ModelSet(models=[TWO, other])
    cal = pdp.calibrate(both, pdp.Sum(), epsilon=1.0, adversaries=WEAKEST)
    with pytest.raises(pdp.ModelError, match="other groups are noise"):
        cal.release(homes(3), value="x", by="home")
    cal.release(homes(2), value="x", by="home")


@pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")
def test_a_model_of_one_group_never_takes_others_for_noise():
    cal = pdp.calibrate(HOME, pdp.Sum(), epsilon=1.0, adversaries=WEAKEST)
    assert leakage_about_one_member(HOME, cal.scale) <= 1.0 + 1e-9
    for number in (1, 50):
        cal.release(homes(number), value="x", by="home")


@pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")
def test_rows_of_wide_frames_hold_every_block_and_never_take_other_rows_for_noise():
    member = HOME.to_table().probabilities.sum(axis=(1, 2))
    one = pdp.JointTable(probabilities=member, domains=[[0, 1, 2]], names=["d"])
    table = pdp.JointTable(
        probabilities=HOME.to_table().probabilities, domains=[[0, 1, 2]] * 3, names=["a", "b", "c"]
    )
    model = pdp.Blocks(models=[table, one])
    cal = pdp.calibrate(model, pdp.Sum(), epsilon=1.0, adversaries=WEAKEST)
    leaks = leakage_about_one_member(HOME, cal.scale, others=[0.0, 1.0, 2.0], masses=member)
    assert leaks <= 1.0 + 1e-9  # the fourth column is in every row
    row = {"a": 0, "b": 0, "c": 2, "d": 1}
    cal.release(row)
    cal.release(pd.DataFrame([row] * 5))
    assert len(cal.release_rows(pd.DataFrame([row] * 5)).value) == 5
    with pytest.raises(pdp.ModelError, match="lack a value for d"):
        cal.release({name: row[name] for name in "abc"})


def test_ledgers_check_the_numbers_of_groups_too():
    ledger = pdp.Ledger(TWO, epsilon=3.0, adversaries=WEAKEST)
    with pytest.raises(pdp.ModelError, match="other groups are noise"):
        ledger.release(pdp.Sum(), homes(1), epsilon=1.0, value="x", by="home")
    with pytest.raises(pdp.ModelError, match="other groups are noise"):
        ledger.release(pdp.Sum(), homes(1), epsilon=None, value="x", by="home")
    everyone = pdp.calibrate(TWO, pdp.Sum(), epsilon=1.0)
    with pytest.raises(pdp.LedgerError, match="against the adversaries of the ledger"):
        everyone.release(homes(1), value="x", by="home", ledger=ledger)
    with pytest.raises(pdp.LedgerError, match="against the adversaries of the ledger"):
        ledger.spend(everyone)
    assert ledger.spent == 0.0
    ledger.release(pdp.Sum(), homes(2), epsilon=1.0, value="x", by="home")
    assert 0 < ledger.spent <= 1.0
    book = pdp.Ledger(TWO, epsilon=3.0)  # against everyone: any number of groups will do
    everyone.release(homes(1), value="x", by="home", ledger=book)


def test_learned_counts_are_those_of_the_frame_learned_from():
    rng = np.random.default_rng(1)
    sizes = rng.permutation(np.repeat([1, 2], 40))
    learned = pd.DataFrame({"home": np.repeat(np.arange(80), sizes)})
    learned["ill"] = rng.integers(0, 2, len(learned))
    estimator = pdp.GroupEstimator(by="home", value="ill", kind="binary", source="public")
    model = estimator.fit(learned).model_
    cal = pdp.calibrate(model, pdp.Sum(), epsilon=1.0, adversaries=WEAKEST)
    cal.release(learned, value="ill", by="home")
    with pytest.raises(pdp.ModelError, match="other groups are noise"):
        cal.release(learned[learned["home"] != 0], value="ill", by="home")


@pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")
def test_the_accessor_counts_the_groups_of_its_frame():
    frame = homes(3)
    options = {"groups": "home", "adversaries": WEAKEST, "epsilon": 1.0}
    frame.pdp.sum("x", bounds=(0, 2), **options)
    with pytest.raises(pdp.ModelError, match="other groups are noise"):
        frame.pdp.sum("x", model=TWO, **options)
