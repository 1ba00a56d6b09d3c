"""The heart of the method: energy bins, log θ and Ψ with its slope, and the rules that learn θ."""
