"""Compiles every kernel, as a learner would launch it, for GPUs that need not be there; prints what was compiled.

`test_logprob_triton.py` runs it. Triton's interpreter takes much that its compiler does not.
"""

from __future__ import annotations

from typing import Any
from unittest import mock

import torch
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile

from maspo_rl.learner import logprob, logprob_triton

ARCHITECTURES = [80, 90]
TYPES = {torch.float32: "*fp32", torch.bfloat16: "*bf16", torch.float16: "*fp16", torch.int64: "*i64"}


class Compiled:
    """A kernel that is compiled where it is launched."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def __getitem__(self, _: tuple[int, ...]) -> Compiled:
        return self

    def __call__(self, *arguments: Any, **options: Any) -> None:
        types, constants, aligned = {}, {}, {}
        for place, (parameter, value) in enumerate(zip(self.kernel.params, arguments, strict=True)):
            if value is None or parameter.is_constexpr:
                types[parameter.name], constants[(place,)] = "constexpr", value
            else:
                types[parameter.name] = TYPES[value.dtype] if isinstance(value, Tensor) else "i32"
                aligned[(place,)] = [["tt.divisibility", 16]]
        source = ASTSource(self.kernel, types, constants, aligned)
        for architecture in ARCHITECTURES:
            done = compile(source, target=GPUTarget("cuda", architecture, 32), options=options)
            print(self.kernel.__name__, types["block"], f"sm_{architecture}", len(done.asm["cubin"]) > 0)
            # A product and a sum as one operation would break "a log-prob is at most 0".
            assert "fma." not in done.asm["ptx"]


def main() -> None:
    """The head's number formats, with and without a bias and a gradient by the entropy."""
    logprob.chunk_type = lambda _: logprob_triton.TritonChunk
    kernels = {name: Compiled(getattr(logprob_triton, name)) for name in ("_observe", "_likely", "_differentiate")}
    with mock.patch.multiple(logprob_triton, **kernels):
        for dtype, more in ((torch.bfloat16, True), (torch.float16, False), (torch.float32, True)):
            hidden, weight, bias = (torch.ones(*shape, dtype=dtype) for shape in ((2, 8), (4096, 8), (4096,)))
            inputs = (hidden.requires_grad_(), weight, bias if more else None, torch.zeros(2, dtype=torch.int64))
            scores = logprob.score_tokens(*inputs, temperature=0.7, entropy_gradient=more, proxy_kappa=0.1)
            scores[0].sum().backward()


if __name__ == "__main__":
    main()
