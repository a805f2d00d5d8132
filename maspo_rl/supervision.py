"""Keeps a run going when learner processes die: from the last checkpoint, in new ones."""

from __future__ import annotations

import logging

from maspo_rl.cluster import ActorDied, DeadlineError
from maspo_rl.report.checkpoints import newest_whole
from maspo_rl.trainer import Trainer


def run(trainer: Trainer) -> None:
    """`trainer.run()`, begun again from the newest checkpoint whenever a learner dies or falls silent.

    Engines are replaced where they are used (`EngineGroup`, `Stack`). `cluster.max_restarts` limits both. Raises the
    last failure when the restarts are used up.
    """
    restarts_left = trainer.config.cluster.max_restarts
    while True:
        try:
            return trainer.run()
        except (ActorDied, DeadlineError) as failure:
            if not restarts_left:
                raise
            restarts_left -= 1
            checkpoint, _ = newest_whole(trainer.directory) or (trainer.resumed_from, {})
            logging.getLogger(__name__).warning(
                "%s; starting the learners anew, from %s (%d restarts left)",
                failure,
                checkpoint or "the run's beginning",
                restarts_left,
            )
            trainer.stack.restart_learners()
            trainer.load(checkpoint)
