"""What every other package builds on: checks, pytrees, noise, descriptions, the progress bar."""
