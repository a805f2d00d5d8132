"""One vLLM engine in one actor process."""

from __future__ import annotations

import gc
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maspo_rl.cluster.faults import fault_point
from maspo_rl.cluster.process import give_back_memory, redirect_output
from maspo_rl.config.derived import engine_threads
from maspo_rl.config.errors import RunFailure
from maspo_rl.config.schema import RolloutConfig
from maspo_rl.rollout.requests import SampleRequest, SamplingSettings
from maspo_rl.types import Rollout


class StaleWeights(RunFailure):
    """An engine was asked to sample under a version whose weights it does not hold."""


@dataclass(frozen=True)
class EngineSettings:
    """Everything an engine needs to start, resolved on the driver."""

    model: str
    revision: str | None
    dtype: str
    max_context: int
    transfer_backend: str
    rollout: RolloutConfig
    seed: int
    on_gpu: bool


class Engine:
    """vLLM behind four verbs: generate, receive weights, confirm them, report.

    On CPU the engine core runs in the actor's own process: no second process, no busy waiting between the two.
    """

    def __init__(self, settings: EngineSettings, log: Path, devices: str | None) -> None:
        redirect_output(log)
        self._name = log.stem
        if devices is not None:
            os.environ["CUDA_VISIBLE_DEVICES"] = devices
        os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
        os.environ["VLLM_LOGGING_LEVEL"] = "WARNING"
        os.environ["VLLM_NO_USAGE_STATS"] = "1"
        if not settings.on_gpu:
            os.environ["VLLM_CPU_OMP_THREADS_BIND"] = "nobind"
            # The samplers that vLLM compiles on its first generation cost 30 s and gain nothing here.
            os.environ["TORCHDYNAMO_DISABLE"] = "1"
        import torch  # noqa: PLC0415 - the environment above must be set first
        from transformers import AutoTokenizer, GenerationConfig  # noqa: PLC0415
        from vllm import LLM  # noqa: PLC0415
        from vllm.config import WeightTransferConfig  # noqa: PLC0415

        from maspo_rl.weights import receiver  # noqa: PLC0415

        rollout = settings.rollout
        if not settings.on_gpu:
            torch.set_num_threads(engine_threads(rollout))
        self._tokenizer = AutoTokenizer.from_pretrained(settings.model, revision=settings.revision)
        self._stop_token_ids = _end_tokens(self._tokenizer, GenerationConfig, settings)
        memory: dict[str, Any] = (
            {"gpu_memory_utilization": rollout.gpu_memory_fraction}
            if settings.on_gpu
            else {
                "kv_cache_memory_bytes": int(rollout.kv_cache_gib * 1024**3),
                # A prompt that was cut in two has vLLM turn its seed's generator back, which one on a CPU cannot.
                "enable_chunked_prefill": False,
                # A prompt is shared by whole blocks alone. vLLM's kernel for CPUs takes multiples of 32; by default
                # it is given 128, which most prompts do not fill.
                "block_size": 32,
            }
        )
        self._llm = LLM(
            settings.model,
            revision=settings.revision,
            dtype=settings.dtype,
            seed=settings.seed,
            tensor_parallel_size=rollout.tensor_parallel,
            max_model_len=settings.max_context,
            max_num_seqs=rollout.max_sequences,
            skip_tokenizer_init=not rollout.stop,
            enforce_eager=not settings.on_gpu,
            enable_prefix_caching=True,
            disable_log_stats=True,
            # The log-probs kept with a rollout are those of the distribution it was drawn from.
            logprobs_mode="processed_logprobs",
            generation_config="vllm",
            weight_transfer_config=WeightTransferConfig(backend=receiver.engine_backend(settings.transfer_backend)),
            worker_extension_cls="maspo_rl.weights.receiver.WorkerExtension",
            **memory,
        )
        self._version: int | None = None
        # A full collection would walk the million objects that imports and the engine's start have made, every few
        # steps, and find nothing.
        give_back_memory()
        gc.freeze()
        self._on_gpu = settings.on_gpu
        self._rest()

    def ready(self) -> int:
        """The process id, once the engine stands."""
        return os.getpid()

    def _rest(self) -> None:
        """Holds no more memory than it must, as nothing is asked of it."""
        if not self._on_gpu:
            self._llm.collective_rpc("give_back_cache")

    def generate(self, requests: list[SampleRequest], sampling: SamplingSettings, version: int) -> list[Rollout]:
        """One rollout per request, in order.

        Raises:
            StaleWeights: `version` is not the one confirmed last.
        """
        fault_point(self._name, "generate")
        # What a replaced engine computes again must not depend on what the first one had in its cache.
        self._llm.reset_prefix_cache()
        if version != self._version:
            raise StaleWeights(
                f"asked to sample under policy version {version}, but the weights confirmed here are of version "
                f"{self._version}"
            )
        from vllm import SamplingParams  # noqa: PLC0415

        outputs = self._llm.generate(
            [{"prompt_token_ids": list(request.prompt_token_ids)} for request in requests],
            [
                SamplingParams(
                    temperature=sampling.temperature,
                    top_p=sampling.top_p,
                    top_k=sampling.top_k,
                    max_tokens=sampling.max_new_tokens,
                    stop=list(sampling.stop),
                    stop_token_ids=self._stop_token_ids,
                    seed=request.seed,
                    logprobs=0 if sampling.logprobs else None,
                    flat_logprobs=sampling.logprobs,
                    detokenize=bool(sampling.stop),
                    skip_clone=True,
                )
                for request in requests
            ],
            use_tqdm=False,
        )
        self._rest()
        completions = [output.outputs[0] for output in outputs]
        texts = self._tokenizer.batch_decode(
            [completion.token_ids for completion in completions], skip_special_tokens=True
        )
        return [
            Rollout(
                prompt_id=request.prompt_id,
                sample_index=request.sample_index,
                token_ids=tuple(completion.token_ids),
                logprobs=tuple(completion.logprobs.logprobs) if sampling.logprobs else (),
                text=text,
                finish_reason="length" if completion.finish_reason == "length" else "stop",
                version=version,
                seed=request.seed,
            )
            for request, completion, text in zip(requests, completions, texts, strict=True)
        ]

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        self._llm.collective_rpc("init_weight_transfer_engine", kwargs={"init_info": init_info})

    def start_weight_update(self) -> None:
        self._version = None
        self._llm.collective_rpc("start_weight_update")

    def update_weights(self, update_info: Any) -> None:
        fault_point(self._name, "update_weights")
        self._llm.collective_rpc("update_weights", kwargs={"update_info": update_info})

    def finish_weight_update(self) -> None:
        self._llm.collective_rpc("finish_weight_update")

    def take_weights(self) -> None:
        """A whole update, of weights that lie ready: one call across processes instead of three."""
        self.start_weight_update()
        self.update_weights({})
        self.finish_weight_update()

    def confirm(self, version: int, digest: str | None) -> None:
        """Accepts the weights received last as `version` if their digest is the sender's on every worker; None is
        that of an engine that has received nothing and holds the model's own.

        Raises:
            StaleWeights: the bytes that arrived are not those that were sent.
        """
        received = self._llm.collective_rpc("received_digest")
        fault_point(self._name, "confirm")
        if any(value != digest for value in received):
            raise StaleWeights(
                f"weights of policy version {version} were sent with digest {digest} but arrived with {received}"
            )
        self._version = version


def _end_tokens(tokenizer: Any, generation_config: Any, settings: EngineSettings) -> list[int]:
    """Every token that ends a response: the tokenizer's and the generation config's, which differ for Qwen's bases."""
    ends = {tokenizer.eos_token_id}
    try:
        declared = generation_config.from_pretrained(settings.model, revision=settings.revision).eos_token_id
    except OSError:  # the model ships no generation config
        declared = None
    ends |= set(declared if isinstance(declared, list) else [declared])
    return sorted(end for end in ends if end is not None)
