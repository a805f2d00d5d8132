"""One pool of workers for all tests of the room that do not harm it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from maspo_rl.config.verifier import VerifierConfig
from maspo_rl.verifier import Verifier

# A judgement takes a millisecond or ten: on a busy machine hypothesis' own deadline would judge the machine.
settings.register_profile("verifier", deadline=None)
settings.load_profile("verifier")


@pytest.fixture(scope="session")
def verifier() -> Iterator[Verifier]:
    with Verifier(VerifierConfig(workers=2, deadline_s=5.0)) as shared:
        yield shared
