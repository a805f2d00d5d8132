"""Ray for the length of one command: started or joined, and left clean whatever happens inside."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

import ray

from maspo_rl.config.schema import ClusterConfig

# The object store carries rollouts and batches, not weights: small machines keep their memory for the actors.
_LOCAL_OBJECT_STORE_BYTES = 256 * 1024**2


@contextmanager
def ray_session(config: ClusterConfig) -> Iterator[None]:
    """Starts a Ray of our own (`cluster.address` null) or joins a running cluster; ends it on any exit."""
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray runs its workers at niceness 15, behind everything else on the machine; ours are the work itself.
    os.environ.setdefault("RAY_worker_niceness", "0")
    # Each of our actors starts in an environment of its own, for which no worker that Ray starts beforehand will do.
    os.environ.setdefault("RAY_prestart_worker_first_driver", "0")
    if config.address is None:
        gpus = config.gpus_per_node
        ray.init(
            include_dashboard=False,
            num_cpus=max(os.cpu_count() or 1, 2),
            num_gpus=gpus,
            object_store_memory=None if gpus else _LOCAL_OBJECT_STORE_BYTES,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    else:
        ray.init(address=config.address, log_to_driver=False, logging_level=logging.ERROR)
    try:
        yield
    finally:
        ray.shutdown()
