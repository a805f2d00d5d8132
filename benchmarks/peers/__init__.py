"""Other frameworks on the same work, each in a process of its own."""
