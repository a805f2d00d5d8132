"""Seeds of samples."""

from __future__ import annotations

import hashlib

from maspo_rl.rollout.requests import sample_requests
from maspo_rl.rollout.sampling import sample_seed
from maspo_rl.types import Prompt


def test_seed_is_the_first_63_bits_of_blake2b_of_its_arguments() -> None:
    digest = hashlib.blake2b(b"3\x007\x00p\x001", digest_size=8).hexdigest()
    assert sample_seed(3, 7, "p", 1) == int(digest, 16) // 2


def test_every_argument_counts_and_none_runs_into_the_next() -> None:
    seeds = {
        sample_seed(run, step, prompt, index)
        for run in (0, 1, 11)
        for step in (1, 11)
        for prompt in ("1", "11", "1\n1")
        for index in (0, 1, 11)
    }
    assert len(seeds) == 3 * 2 * 3 * 3


def test_requests_do_not_depend_on_their_company() -> None:
    prompts = [Prompt(name, (1, 2), "", "", "") for name in "abc"]
    together = sample_requests(prompts, 2, 0, 5)
    apart = [request for prompt in prompts for request in sample_requests([prompt], 2, 0, 5)]
    assert together == apart
