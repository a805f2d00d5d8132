"""Speed and memory against a peer or a limit, one module per claim, printed as JSON lines."""
