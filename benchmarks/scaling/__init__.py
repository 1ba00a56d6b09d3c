"""The same runs on one device, on several, and in several processes: `python -m benchmarks.scaling`."""
