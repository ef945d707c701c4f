"""What steps of unequal budgets tell about each other: never below, and close."""

import numpy as np
import pytest

from pdp_calibrate.families.stream.course import LATE, Course
from pdp_calibrate.families.stream.memory import Contracting, Shifting, Smoothing
from tests.oracles.streams import (
    any_mechanism,
    best_hints,
    hinted,
    series_precision,
    series_shift,
)
from tests.support.marks import slow_after


def course_of(memory, budgets, *, limit=1e9, **others):
    course = Course(memory=memory, limit=limit, **others)
    for step, budget in enumerate(budgets):
        if budget:
            course = course.plus(step, float(budget))
    return course


def kernel_of(rng, states, strength):
    law = np.exp(rng.normal(0, strength, (states, states)))
    return law / law.sum(axis=1, keepdims=True)


def diameter_of(kernel):
    logs = np.log(kernel)
    apart = logs[:, :, None] - logs[:, None, :]
    return float((apart[:, None] - apart[None, :]).max())


@pytest.mark.parametrize("seed", slow_after(12, range(60)))
def test_never_below_any_mechanism_on_short_chains(seed):
    rng = np.random.default_rng(seed)
    states = 2 if seed % 3 else 3
    steps = int(rng.integers(2, 6 if states == 2 else 4))
    kernels = [kernel_of(rng, states, rng.uniform(0.1, 1.5)) for _ in range(steps - 1)]
    budgets = rng.choice([0.0, 0.1, 0.5, 2.0], steps)
    start = rng.dirichlet(np.ones(states))
    hints = [np.exp(rng.normal(0, 1, states)) for _ in range(steps)] if seed % 2 else None
    target = int(rng.integers(steps))
    known = {}
    if seed % 4 == 0 and steps > 2:
        known = {int((target + 1) % steps): int(rng.integers(states))}
    told = any_mechanism(start, kernels, budgets, target, hints=hints, known=known)
    memory = Contracting(max(map(diameter_of, kernels)) * (1 + 1e-12))
    bound = course_of(memory, budgets).about(target)
    assert told <= bound * (1 + 1e-7) + 1e-9


@pytest.mark.parametrize("seed", slow_after(2, range(12)))
def test_never_below_the_best_hints_and_within_five_percent_for_two_states(seed):
    rng = np.random.default_rng(seed)
    steps = int(rng.integers(10, 41))
    stay = rng.uniform(0.55, 0.92)
    kernel = np.array([[stay, 1 - stay], [1 - stay, stay]])
    budgets = rng.uniform(0.05, 0.5, steps) if seed % 2 else np.full(steps, 0.3)
    target = int(rng.integers(steps))
    bound = course_of(Contracting(diameter_of(kernel) * (1 + 1e-12)), budgets).about(target)
    told = best_hints([kernel] * (steps - 1), budgets, target, seed=seed)
    assert told <= bound * (1 + 1e-9)
    assert told >= 0.95 * bound


def test_steps_that_differ_are_covered_by_the_one_that_forgets_least():
    rng = np.random.default_rng(1)
    for _ in range(30):
        steps = 40
        stays = rng.uniform(0.5, 0.9, steps - 1)
        kernels = [np.array([[s, 1 - s], [1 - s, s]]) for s in stays]
        budgets = rng.uniform(0.0, 0.4, steps)
        hints = np.stack([np.zeros(steps), rng.normal(0, 0.5, steps)], axis=1)
        likelihoods = np.stack([np.zeros(steps), rng.choice([-1, 1], steps) * budgets], axis=1)
        course = course_of(Contracting(max(map(diameter_of, kernels))), budgets)
        for target in range(0, steps, 7):
            told = hinted(np.full(2, 0.5), kernels, likelihoods, hints, target)
            assert abs(told[1] - told[0]) <= course.about(target) * (1 + 1e-12)


def test_gaussian_steps_of_unequal_budgets_are_exact():
    rng = np.random.default_rng(2)
    budgets = rng.choice([0.0, 0.2, 1.0], 200)
    for correlation in (0.8, -0.7):
        course = course_of(Shifting(abs(correlation)), budgets)
        for target in (0, 57, 199):
            dense = series_shift(correlation, budgets, (), target)
            assert dense <= course.about(target) <= dense * (1 + 1e-9)
    noisy = course_of(Smoothing(0.8, 1.5), budgets)
    for target in (0, 57, 199):
        dense = series_precision(0.8, 1.5, budgets, target)
        assert noisy.about(target) == pytest.approx(dense, rel=1e-9)
        assert noisy.about(target) >= dense * (1 - 1e-12)


def test_nobody_who_knows_records_is_told_more_by_gaussian_answers():
    rng = np.random.default_rng(6)
    places = np.arange(25)
    covariance = 1.5 * 0.8 ** np.abs(places[:, None] - places)
    for _ in range(60):
        precisions = rng.choice([0.0, 0.3, 4.0], 25)
        course = course_of(Smoothing(0.8, 1.5), precisions)
        target = int(rng.integers(25))
        known = [t for t in places if t != target and rng.random() < 0.2]
        unknown = [t for t in places if t not in known]
        prior = covariance[np.ix_(unknown, unknown)]
        if known:
            cross = covariance[np.ix_(unknown, known)]
            prior = prior - cross @ np.linalg.solve(covariance[np.ix_(known, known)], cross.T)
        place = unknown.index(target)
        after = np.linalg.inv(np.linalg.inv(prior) + np.diag(precisions[unknown]))
        gained = 1 / after[place, place] - 1 / prior[place, place]
        assert gained <= course.about(target) * (1 + 1e-9) + 1e-12


MEMORIES = [Contracting(2.77), Shifting(0.8), Smoothing(0.8, 2.0)]


@pytest.mark.parametrize("memory", MEMORIES, ids=lambda one: type(one).__name__)
def test_the_largest_is_the_largest_over_all_steps(memory):
    rng = np.random.default_rng(4)
    for _ in range(30):
        budgets = rng.choice([0.0, 0.0, 0.0, 0.3, 1.0], 12)
        course = course_of(memory, budgets)
        every = [course.about(step) for step in range(-3, 15)]
        assert course.leakage() == max(every)


@pytest.mark.parametrize("memory", MEMORIES, ids=lambda one: type(one).__name__)
def test_a_promise_is_what_steps_to_come_may_spend(memory):
    promise = 0.1
    before = course_of(memory, [0.2, 0.0, 0.4], promise=promise)
    spent = before.plus(3, promise)
    for step in range(4, 200):
        spent = spent.plus(step, promise)
    plain = Course(memory=memory, limit=1e9, amounts=spent.amounts)
    assert plain.leakage() <= before.leakage() * (1 + 1e-12)
    assert before.leakage() >= memory.for_ever(promise)
    assert before.about(50) >= plain.about(50)


@pytest.mark.parametrize("memory", MEMORIES, ids=lambda one: type(one).__name__)
def test_folding_changes_nothing_that_matters(memory):
    budgets = np.random.default_rng(5).uniform(0, 0.2, 1500)
    whole = course_of(memory, budgets, limit=10.0)
    folded = Course(memory=memory, limit=10.0)
    for step, budget in enumerate(budgets):
        folded = folded.plus(step, float(budget)).closed()
    assert folded.folded is not None
    assert len(folded.amounts) <= LATE + memory.fading(1e-14) + 1
    assert whole.leakage() <= folded.leakage() <= whole.leakage() * (1 + 1e-11)
    for step in (1499, 1450, 1200):
        assert folded.about(step) == pytest.approx(whole.about(step), rel=1e-11)
    again = Course(memory=memory, limit=10.0).continued(folded.to_dict())
    assert again == folded


def test_a_step_at_the_very_budget_is_never_folded_above_it():
    course = Course(memory=Contracting(2.0), limit=1.0).plus(0, 1.0 - 1e-15)
    for step in range(1000, 1100):
        course = course.plus(step, 0.01).closed()
    assert 1.0 - 1e-15 <= course.leakage() <= 1.0
    assert course.about(0) <= 1.0


def test_damaged_courses_are_refused():
    start = Course(memory=Contracting(2.0), limit=1.0)
    good = start.plus(3, 0.5).to_dict()
    for damage in (
        {"steps": [["3", 0.5]]},
        {"steps": [[True, 0.5]]},
        {"steps": [[3, -0.5]]},
        {"steps": [[3, float("nan")]]},
        {"on_top": float("inf")},
        {"folded": {"before": 9, "forward": 0.0, "largest": 0.0}},
    ):
        with pytest.raises(ValueError, match=r"."):
            start.continued(good | damage)
