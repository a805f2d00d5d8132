"""Tokens per second of an evaluation beside bare `vllm.LLM.generate` on the same requests; as JSON lines.

    python -m benchmarks.rollout model=DIR benchmarks=[gsm8k] benchmarks.gsm8k.heldout_files=FILE k=4 eval.problems=200

The arguments are those of `maspo-rl eval`. Ours is all that an evaluation does after its start: requests to the engine
actor, chunks, judging, samples on disk. Bare is one call of `generate` with the same prompts, seeds and settings in
this process. The two take turns on an otherwise idle machine.
"""
# ruff: noqa: PLC0415 - the environment must be set before torch and vLLM are imported

from __future__ import annotations

import json
import math
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROUNDS = 3
THREADS = {"OMP_NUM_THREADS": str(os.cpu_count()), "GOMP_SPINCOUNT": "100000"}
VLLM = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "TORCHDYNAMO_DISABLE": "1",
}


def main() -> None:
    """Prints one line a round, and the ratio of the medians."""
    os.environ |= THREADS | VLLM
    from maspo_rl.assembly import running_engines
    from maspo_rl.commands.eval import chunk_of, fit
    from maspo_rl.config.evaluation import load_eval
    from maspo_rl.data import load_tokenizer
    from maspo_rl.evaluation.benchmarks import benchmark_config, load_benchmark
    from maspo_rl.evaluation.samples import Sampling, read_samples
    from maspo_rl.report.run_directory import RunDirectory
    from maspo_rl.rollout import SamplingSettings
    from maspo_rl.rollout.requests import sample_requests

    command = load_eval(sys.argv[1:])
    config = command.config
    tokenizer = load_tokenizer(config.model.path)
    ((name, settings),) = command.benchmarks.items()
    prompts = list(load_benchmark(benchmark_config(name, settings), tokenizer, config.eval.problems))
    fit(config, max(len(prompt.token_ids) for prompt in prompts))
    sampling = SamplingSettings.for_evaluation(config)
    bare = bare_engine(config)
    requests = sample_requests(prompts, config.eval.samples, sampling.seed, -1)
    rates: dict[str, list[float]] = {"maspo_rl": [], "vllm": []}
    with tempfile.TemporaryDirectory() as folder:
        directory = RunDirectory(Path(folder))
        directory.create()
        with running_engines(config, directory) as (engines, verifier):
            ours = Sampling(engines, verifier, sampling, config.eval.samples, version=0)
            for number in range(ROUNDS + 1):
                path = directory.evaluation / f"{number}.jsonl"
                started = time.perf_counter()
                ours.collect(prompts, path, chunk=chunk_of(config))
                own = time.perf_counter() - started
                tokens = sum(row["tokens"] for row in read_samples(path))
                started = time.perf_counter()
                tokens_of_bare = generate(bare, requests, sampling, tokenizer.eos_token_id)
                other = time.perf_counter() - started
                if number:  # the first round warms up
                    rates["maspo_rl"].append(tokens / own)
                    rates["vllm"].append(tokens_of_bare / other)
                    row = {key: round(values[-1], 1) for key, values in rates.items()}
                    print(json.dumps({"benchmark": "rollout", "round": number, "tokens_per_s": row}), flush=True)
    medians = {key: statistics.median(values) for key, values in rates.items()}
    print(json.dumps({"benchmark": "rollout", "of_bare_vllm": round(medians["maspo_rl"] / medians["vllm"], 3)}))


def bare_engine(config: Any) -> Any:
    """vLLM with the settings of our engine."""
    import torch
    from vllm import LLM

    from maspo_rl.cluster.precision import compute_dtype
    from maspo_rl.data import resolve_model

    torch.set_num_threads(os.cpu_count() or 1)
    return LLM(
        resolve_model(config.model.path),
        dtype=compute_dtype(config.model, config.cluster),
        max_model_len=config.rollout.max_context,
        max_num_seqs=config.rollout.max_sequences,
        kv_cache_memory_bytes=math.ceil(config.rollout.kv_cache_gib * 1024**3),
        enforce_eager=True,
        enable_prefix_caching=True,
        generation_config="vllm",
    )


def generate(engine: Any, requests: list[Any], sampling: Any, end: int) -> int:
    """Response tokens of one call."""
    from vllm import SamplingParams

    parameters = [
        SamplingParams(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            max_tokens=sampling.max_new_tokens,
            stop_token_ids=[end],
            seed=request.seed,
        )
        for request in requests
    ]
    engine.reset_prefix_cache()
    prompts = [{"prompt_token_ids": list(request.prompt_token_ids)} for request in requests]
    outputs = engine.generate(prompts, parameters, use_tqdm=False)
    return sum(len(output.outputs[0].token_ids) for output in outputs)


if __name__ == "__main__":
    main()
