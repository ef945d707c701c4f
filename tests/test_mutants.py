"""Small edits of the code that no other test noticed: each test here kills one.

Found by sampled mutation testing (`tests/benchmarks/mutation.py`).
"""

import pdp_calibrate as pdp

PAIR = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
HERE = {"x1": 1, "x2": 0}


def test_a_new_draw_starts_from_nothing_in_the_same_object():
    ledger = pdp.Ledger(PAIR, epsilon=1.0, draw="monday")
    ledger.release(pdp.Sum(), HERE, epsilon=0.6)
    before = ledger.would_spend(pdp.Sum(), epsilon=0.3)
    ledger.new_draw("tuesday")
    after = ledger.would_spend(pdp.Sum(), epsilon=0.3)
    assert after <= 0.3 * (1 + 1e-9) < before
