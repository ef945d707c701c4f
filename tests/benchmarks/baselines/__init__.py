"""Other people's noise scales for correlated data, written from their published formulas."""
