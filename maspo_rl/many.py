"""Several runs, one after the other, on as few stacks of engines and learners as they need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from maspo_rl.config.derived import context_tokens
from maspo_rl.config.errors import RunFailure
from maspo_rl.config.schema import Config
from maspo_rl.run import prepare

if TYPE_CHECKING:
    from maspo_rl.trainer import OnStep


def run_many(
    configs: Iterable[Config], on_step: OnStep, benchmarks: Mapping[str, Sequence[str]] | None = None
) -> Iterator[tuple[Config, RunFailure | None]]:
    """Trains each checked run to its end, or from where it stopped; yields it when it is there, or with what ended it.
    `benchmarks` is `prepare`'s.

    Runs that differ in nothing that engines and learners are built from share a stack, whose learners begin each run
    with a fresh policy and optimiser: what comes out is what the run alone would give. They are served stack by stack,
    so not always in the order of `configs`. Raises the RunFailure that takes the stack with it: dead or silent actors.
    """
    # Imported here: what is all finished needs neither vLLM nor Ray.
    from maspo_rl import supervision  # noqa: PLC0415
    from maspo_rl.assembly import running_stack, shared_parts  # noqa: PLC0415
    from maspo_rl.cluster import ActorDied, ActorFailure, DeadlineError  # noqa: PLC0415

    shared: list[tuple[object, list[Config]]] = []
    for config in configs:
        parts = (shared_parts(config), context_tokens(config))
        same = next((members for key, members in shared if key == parts), None)
        if same is None:
            shared.append((parts, same := []))
        same.append(config)
    for _, members in shared:
        first = prepare(members[0], benchmarks)
        with running_stack(members[0], first.tokenizer, first.directory) as stack:
            for config in members:
                run = first if config is members[0] else prepare(config, benchmarks)
                if run is not first:
                    stack.begin(config)
                failure = None
                try:
                    supervision.run(run.trainer(stack, on_step))
                except (ActorDied, ActorFailure, DeadlineError):
                    raise
                except RunFailure as reason:
                    failure = reason
                yield config, failure
