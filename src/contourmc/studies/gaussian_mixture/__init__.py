"""Figure 1 of the paper: a mixture of two Gaussians, its flattened energy, θ, and the error of the mean."""
