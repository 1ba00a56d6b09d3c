"""From the start of a process to a printed mean, beside what people would use instead."""
