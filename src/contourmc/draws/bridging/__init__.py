"""The integral of a density from weighted draws of it: a fitted mixture of Gaussians, and the bridge to it."""
