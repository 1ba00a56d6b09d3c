"""Samplers of small networks, each at its best settings and at equal compute: `python -m benchmarks.networks`."""
