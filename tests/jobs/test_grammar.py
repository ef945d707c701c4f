"""Queries written as text."""

import pytest
from hypothesis import given, settings, strategies as st

import pdp_calibrate as pdp
from pdp_calibrate.jobs.grammar import QuerySyntaxError, Question, parse_query

ASKED = {
    "sum(a,b)": Question(kind="sum", columns=("a", "b")),
    "SUM ( a , b )": Question(kind="sum", columns=("a", "b")),
    "sum()": Question(kind="sum", columns=None),
    "mean(income)": Question(kind="mean", columns=("income",)),
    'mean(\'net income\', "a""b", `c,d`)': Question(
        kind="mean", columns=("net income", 'a"b', "c,d")
    ),
    "sum(7, 8)": Question(kind="sum", columns=("7", "8")),
    "count(status=1,2)": Question(kind="count", columns=("status",), values=(1, 2)),
    "count(=1)": Question(kind="count", columns=None, values=(1,)),
    "count(a,b = -1.5, '2', yes, TRUE)": Question(
        kind="count", columns=("a", "b"), values=(-1.5, "2", "yes", True)
    ),
    "histogram(city)": Question(kind="histogram", columns=("city",)),
    "histogram(city=Rome,'New York')": Question(
        kind="histogram", columns=("city",), values=("Rome", "New York")
    ),
    "linear(2*a - b + .5e1*'c d')": Question(
        kind="linear", columns=("a", "b", "c d"), weights=(2.0, -1.0, 5.0)
    ),
    "linear(-a)": Question(kind="linear", columns=("a",), weights=(-1.0,)),
}


@pytest.mark.parametrize("text", ASKED)
def test_what_is_written_is_what_is_asked(text):
    assert parse_query(text) == ASKED[text]


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("", 0),
        ("total(a)", 0),
        ("sum", 3),
        ("sum(a", 5),
        ("sum(a b)", 6),
        ("sum(a,)", 6),
        ("sum(a) and more", 7),
        ("sum(a=1)", 5),
        ("count(a)", 7),
        ("count(a=)", 8),
        ("count(a=-x)", 9),
        ("count(a=1 2)", 10),
        ("histogram(a b)", 12),
        ("linear()", 7),
        ("linear(2 a)", 9),
        ("linear(a b)", 9),
        ("linear(a + 2*a)", 11),
        ("mean('a)", 5),
        ("mean(a$)", 6),
    ],
)
def test_errors_point_at_the_place(text, position):
    with pytest.raises(QuerySyntaxError) as caught:
        parse_query(text)
    assert caught.value.position == position
    assert f"at character {position + 1} of" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.picture.splitlines()[-1] == " " * position + "^"
    assert isinstance(caught.value, pdp.QueryError)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=20))
def test_any_name_can_be_quoted(name):
    quoted = name.replace('"', '""')
    assert parse_query(f'mean("{quoted}")').columns == (name,)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="sumcont(),=*+-'\"` a1.e$", max_size=24))
def test_any_text_is_read_or_refused_with_a_place(text):
    place = 0
    try:
        parse_query(text)
    except QuerySyntaxError as error:
        place = error.position
    assert 0 <= place <= len(text)
