"""The checksum notices what can go wrong on the way."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from maspo_rl.weights.digest import RunningDigest, tensor_digest


@given(st.integers(1, 300), st.data(), st.sampled_from([torch.float32, torch.bfloat16]))
def test_any_flipped_bit_changes_it(size: int, data: st.DataObject, dtype: torch.dtype) -> None:
    tensor = torch.randn(size, generator=torch.Generator().manual_seed(size)).to(dtype)
    before = tensor_digest("w", tensor)
    assert before == tensor_digest("w", tensor.clone())
    words = tensor.view(torch.int16)
    position = data.draw(st.integers(0, words.numel() - 1))
    words[position] ^= 1 << data.draw(st.integers(0, 14))
    assert tensor_digest("w", tensor) != before


def test_places_names_and_shapes_matter() -> None:
    tensor = torch.tensor([1.0, 2.0, 3.0, 4.0])
    assert tensor_digest("w", tensor) != tensor_digest("w", tensor[[1, 0, 2, 3]])
    assert tensor_digest("w", tensor) != tensor_digest("v", tensor)
    assert tensor_digest("w", tensor) != tensor_digest("w", tensor.view(2, 2))


def test_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = torch.arange(1000.0)
    whole = tensor_digest("w", tensor)
    monkeypatch.setattr("maspo_rl.weights.digest._CHUNK_ELEMENTS", 7)
    assert tensor_digest("w", tensor) == whole


def test_a_stream_may_come_in_any_order_but_each_name_once() -> None:
    first, second = RunningDigest(), RunningDigest()
    tensors = {"a": torch.ones(3), "b": torch.zeros(2)}
    for name in ("a", "b"):
        first.add(name, tensors[name])
    for name in ("b", "a"):
        second.add(name, tensors[name])
    assert first.hexdigest() == second.hexdigest()
    with pytest.raises(ValueError, match="transferred twice"):
        first.add("a", tensors["a"])
