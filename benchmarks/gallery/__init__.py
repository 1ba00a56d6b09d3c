"""The gallery of problems, sampled by contourmc without tuning and by its peers: `python -m benchmarks.gallery`."""
