"""Time and memory of contourmc, side by side with its peers."""
