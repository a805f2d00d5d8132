"""What a sample's randomness is made of."""

from __future__ import annotations

import hashlib


def sample_seed(run_seed: int, step: int, prompt_id: str, sample_index: int) -> int:
    """Seed of one sample: a pure function of its four arguments, below 2**63, alike on every machine."""
    text = f"{run_seed}\0{step}\0{prompt_id}\0{sample_index}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest()) >> 1
