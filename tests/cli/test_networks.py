"""Networks on the command line: learned on a stated graph, written, and asked about."""

import json

import numpy as np
import pandas as pd
import pytest

from tests.support.cli_runs import fine, refused


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    first = rng.integers(0, 2, size=400)
    others = [np.where(rng.random(400) < 0.7, first, 1 - first) for _ in range(3)]
    columns = dict(zip("abcd", [first, *others], strict=True))
    pd.DataFrame(columns).to_csv("survey.csv", index=False)
    return tmp_path


LEARN = "fit survey.csv --kind table --structure network --edges a:b,b:c,c:d,d:a --public"


def test_a_network_is_learned_and_asked_about(folder):
    fine(f"{LEARN} -o model.json")
    described = json.loads((folder / "model.json").read_text())
    assert described["type"] == "Network"
    assert described["provenance"] == "public"
    found = fine("leakage survey.csv --model model.json -q 'sum()' --scale 2 --json").json
    assert 0.5 < found["leakage"]["value"] < 2, found


def test_edges_that_are_none():
    assert "ONE:OTHER" in refused("fit survey.csv --kind table --structure network --edges a-b")
    assert "edges= states the graph" in refused(
        "fit survey.csv --kind table --structure network --public"
    )
