"""The engine samples with the learner's weights, and with no others."""

from __future__ import annotations

import pytest
from stack import RunningStack, sequence_batch

from maspo_rl.learner.rank import LogprobMismatch
from maspo_rl.rollout.engine import StaleWeights


def test_logprobs_agree_after_every_transfer_as_they_do_for_weights_from_disk(stack: RunningStack) -> None:
    gaps = []
    for step in range(6):
        batch = sequence_batch(stack.sample(stack.publish(), step), step)
        gaps.append(stack.parts.learners.step(batch)["policy/logprob_gap"])
    # float32 on both sides: what remains is the order of summation.
    assert max(gaps) <= max(2 * gaps[0], 5e-6), gaps


def test_the_engines_are_filled_in_place_after_their_first_transfer(stack: RunningStack) -> None:
    """vLLM's own reload is the way for models that are not known to be dense, and the policy in the package is."""
    stack.publish()
    logs = sorted((stack.orders.parent / "shared" / "logs").glob("engine_*.log"))
    assert len(logs) == stack.config.rollout.engines
    assert all("from now on weights enter Qwen3ForCausalLM in place" in log.read_text() for log in logs)


def test_an_engine_refuses_to_sample_under_a_version_it_does_not_hold(stack: RunningStack) -> None:
    version = stack.publish()
    with pytest.raises(StaleWeights, match=f"asked to sample under policy version {version + 1}"):
        stack.sample(version + 1)


def test_a_withheld_transfer_is_noticed_in_the_same_step(stack: RunningStack) -> None:
    version = stack.publish()
    stack.parts.learners.step(sequence_batch(stack.sample(version), 0))
    stale = sequence_batch(stack.sample(version, step=2), 1)
    with pytest.raises(LogprobMismatch, match="the engine sampled with other weights"):
        stack.parts.learners.step(stale)
    # Nothing was updated: with the transfer made good, the same step goes through.
    stack.parts.learners.step(sequence_batch(stack.sample(stack.publish(), step=2), 1))


def test_bytes_that_change_on_the_way_are_refused(stack: RunningStack) -> None:
    """One bit of the shared-memory segment, after the learner has written it; the next transfer makes it good."""
    (flipped,) = stack.order(("learner_0", "sent", "corrupt", 1))
    with pytest.raises(StaleWeights, match="were sent with digest"):
        stack.publish()
    assert flipped.exists()
    with pytest.raises(StaleWeights, match="weights confirmed here are of version None"):
        stack.sample(10**6)
    stack.sample(stack.publish())


def test_the_same_requests_give_the_same_tokens_and_logprobs(stack: RunningStack) -> None:
    first, second = (stack.sample(stack.publish(), step=7) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        for a, b in zip(one.rollouts, other.rollouts, strict=True):
            assert (a.token_ids, a.logprobs, a.seed) == (b.token_ids, b.logprobs, b.seed)


def test_rollouts_are_as_sampled(stack: RunningStack) -> None:
    """Log-probs are negative or zero, one per token; a response holds one stop token, its last, or is cut off."""
    limit, end = stack.config.rollout.max_new_tokens, stack.end_token_id
    for group in stack.sample(stack.publish(), step=8):
        for rollout in group.rollouts:
            assert len(rollout.logprobs) == len(rollout.token_ids) <= limit
            assert max(rollout.logprobs) <= 0
            stopped = rollout.finish_reason == "stop"
            assert rollout.token_ids.count(end) == stopped == (rollout.token_ids[-1] == end)
            assert stopped or len(rollout.token_ids) == limit
