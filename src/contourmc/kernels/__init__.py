"""How chains move: one file for each dynamics, combinators over them, and the schedules of their settings."""
