"""What a run leaves behind and shows: the run directory, metrics, the progress bar, curves."""
