"""Exchangeable groups."""
