"""Weighted draws, and the estimates, diagnosis and files that are made from them."""
