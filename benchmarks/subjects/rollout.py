"""`benchmarks.rollout`: the same requests to bare vLLM, to our engine, and as an evaluation."""
# ruff: noqa: PLC0415 - vLLM reads its environment when it is imported

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks import measure
from maspo_rl.assembly import running_engines
from maspo_rl.commands.eval import chunk_of, fit
from maspo_rl.config.derived import compute_dtype
from maspo_rl.config.evaluation import load_eval
from maspo_rl.config.schema import Config
from maspo_rl.data import load_tokenizer
from maspo_rl.evaluation.benchmarks import benchmark_config, load_benchmark
from maspo_rl.evaluation.samples import Sampling, read_samples
from maspo_rl.report.run_directory import RunDirectory
from maspo_rl.rollout import SamplingSettings
from maspo_rl.rollout.requests import sample_requests
from maspo_rl.types import Prompt

VLLM_ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_NO_USAGE_STATS": "1",
    "TORCHDYNAMO_DISABLE": "1",
    "CUDA_VISIBLE_DEVICES": "",
}
WARM_UP_PROMPTS = 2


@dataclass(frozen=True)
class Work:
    """What is sampled."""

    config: Config
    prompts: list[Prompt]
    sampling: SamplingSettings
    end: int


def work(options: argparse.Namespace) -> Work:
    """The same for every subject."""
    command = load_eval(
        [
            *(f"model.path={options.model}", "benchmarks=[gsm8k]", f"benchmarks.gsm8k.files={options.problems}"),
            *(f"k={options.k}", f"eval.problems={options.count}", f"eval.max_new_tokens={options.max_new_tokens}"),
            *(f"rollout.max_sequences={options.max_sequences}", "rollout.kv_cache_gib=4", "report.wandb=off"),
        ]
    )
    config = command.config
    tokenizer = load_tokenizer(config.model.path)
    source = benchmark_config("gsm8k", command.benchmarks["gsm8k"])
    prompts = list(load_benchmark(source, tokenizer, options.count))
    fit(config, max(len(prompt.token_ids) for prompt in prompts))
    return Work(config, prompts, SamplingSettings.for_evaluation(config), tokenizer.eos_token_id)


def engine(options: argparse.Namespace) -> measure.Figures:
    """Our engine actor, all requests in one call."""
    given = work(options)
    with tempfile.TemporaryDirectory() as folder:
        directory = new_directory(folder)
        with running_engines(given.config, directory) as (engines, _):

            def sample(prompts: list[Prompt]) -> int:
                groups = engines.sample(prompts, options.k, given.sampling, step=-1, version=0)
                return sum(len(rollout.token_ids) for group in groups for rollout in group)

            return timed(given, sample)


def evaluation(options: argparse.Namespace) -> measure.Figures:
    """What `maspo-rl eval` does between its start and its table."""
    given = work(options)
    with tempfile.TemporaryDirectory() as folder:
        directory = new_directory(folder)
        with running_engines(given.config, directory) as (engines, verifier):
            sampling = Sampling(engines, verifier, given.sampling, options.k, version=0)

            def collect(prompts: list[Prompt]) -> int:
                path = directory.evaluation / f"{len(prompts)}.jsonl"
                sampling.collect(prompts, path, chunk=chunk_of(given.config))
                return sum(row["tokens"] for row in read_samples(path))

            return timed(given, collect)


def bare(options: argparse.Namespace) -> measure.Figures:
    """vLLM by itself."""
    given = work(options)
    os.environ |= VLLM_ENVIRONMENT
    torch.set_num_threads(measure.THREADS)
    from vllm import LLM, SamplingParams

    llm: Any = LLM(
        given.config.model.path,
        dtype=compute_dtype(given.config.model, given.config.cluster),
        seed=given.config.seed,
        max_model_len=given.config.rollout.max_context,
        max_num_seqs=given.config.rollout.max_sequences,
        kv_cache_memory_bytes=int(given.config.rollout.kv_cache_gib * 1024**3),
        skip_tokenizer_init=True,
        enforce_eager=True,
        enable_chunked_prefill=False,
        block_size=32,
        enable_prefix_caching=True,
        disable_log_stats=True,
        generation_config="vllm",
    )

    def generate(prompts: list[Prompt]) -> int:
        requests = sample_requests(prompts, options.k, given.sampling.seed, -1)
        parameters = [
            SamplingParams(
                temperature=given.sampling.temperature,
                top_p=given.sampling.top_p,
                max_tokens=given.sampling.max_new_tokens,
                stop_token_ids=[given.end],
                seed=request.seed,
                detokenize=False,
            )
            for request in requests
        ]
        llm.reset_prefix_cache()
        asked = [{"prompt_token_ids": list(request.prompt_token_ids)} for request in requests]
        outputs = llm.generate(asked, parameters, use_tqdm=False)
        return sum(len(output.outputs[0].token_ids) for output in outputs)

    return timed(given, generate)


def new_directory(folder: str) -> RunDirectory:
    """For logs and samples."""
    directory = RunDirectory(Path(folder))
    directory.create()
    return directory


def timed(given: Work, sample: Callable[[list[Prompt]], int]) -> measure.Figures:
    """The rate of `sample`, which returns a number of tokens."""
    sample(given.prompts[:WARM_UP_PROMPTS])
    started = time.perf_counter()
    tokens = sample(given.prompts)
    seconds = time.perf_counter() - started
    return {"tokens": tokens, "seconds": round(seconds, 2), "tokens_per_s": round(tokens / seconds, 1)}
