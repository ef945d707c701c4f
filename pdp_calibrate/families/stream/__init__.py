"""Models without an end: the leakage about any step, for ever."""
