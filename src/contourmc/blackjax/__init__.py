"""The door to BlackJAX: any kernel as a `SamplingAlgorithm`, for its loops and tools."""

from contourmc.blackjax.sampling_algorithm import AlgorithmState, algorithm

__all__ = ["AlgorithmState", "algorithm"]
