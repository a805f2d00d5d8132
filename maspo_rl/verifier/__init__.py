"""Judges what a response finally answered, says why, never stalls, and counts its own failures."""

from maspo_rl.verifier.verifier import Question, Verifier

__all__ = ["Question", "Verifier"]
