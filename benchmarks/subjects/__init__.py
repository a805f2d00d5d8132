"""The work of each benchmark, ours and its plain peer's, each run in a process of its own (`benchmarks.measure`)."""
