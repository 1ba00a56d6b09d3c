"""Weighted draws: the estimates, diagnosis and files that are made of them."""
