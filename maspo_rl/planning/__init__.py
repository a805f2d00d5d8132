"""What a run will take, and what a machine can do, told before anything is started."""
