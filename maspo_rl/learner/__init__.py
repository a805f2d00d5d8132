"""Learner ranks: DeepSpeed in Ray actors, one process each, behind `LearnerGroup`."""

from maspo_rl.learner.batch import SequenceBatch
from maspo_rl.learner.group import LearnerGroup
from maspo_rl.learner.rank import LearnerSettings

__all__ = ["LearnerGroup", "LearnerSettings", "SequenceBatch"]
