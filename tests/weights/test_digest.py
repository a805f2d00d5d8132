"""The checksum notices what can go wrong on the way."""

from __future__ import annotations

import struct
import zlib

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
    monkeypatch.setattr("maspo_rl.weights.digest._ROW_WORDS", 7)
    monkeypatch.setattr("maspo_rl.weights.digest._CHUNK_WORDS", 21)
    assert tensor_digest("w", tensor) == whole


@pytest.mark.parametrize("count", [1, 3, 4, 5, 1021, 4 * (1 << 13), 70_001])
def test_it_is_the_sum_that_it_says(count: int) -> None:
    """In Python's own integers, from the bytes; also of a tensor that begins off a word's bound."""
    store = torch.randn(count + 1, generator=torch.Generator().manual_seed(count)).to(torch.bfloat16)
    for tensor in (store[1:], store[1:].clone()):
        data = tensor.view(torch.int16).numpy().tobytes()
        words = struct.unpack(f"<{-(-len(data) // 8)}Q", data.ljust(-(-len(data) // 8) * 8, b"\0"))
        expected = sum(word * (2 * place + 1) for place, word in enumerate(words)) * 0x5851F42D4C957F2D
        expected += zlib.crc32(f"w:({count},):torch.bfloat16".encode())
        assert tensor_digest("w", tensor) == expected % 2**64


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
