"""The paper's two theorems, measured on the mixture: θ converges to θ⋆, and weighted averages to the truth."""
