"""Evaluation of a policy on held-out problems: what was measured, with how many samples, and where they lie."""
