"""What all draws of a model predict together: averages that are summed up while a run goes on."""
