"""What is sampled: energies, posteriors on mini-batches, and the likelihoods and priors that make them up."""
