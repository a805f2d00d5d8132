"""Wrong configurations, from misspelt keys to files that are none: each refused in one line that names the key."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from maspo_rl.config.errors import InputError
from maspo_rl.run import checked_config, prepare

MISSPELT = [
    ("sed=1", "unknown key 'sed': did you mean seed?"),
    ("resumee=auto", "unknown key 'resumee': did you mean resume?"),
    ("run.nam=x", "unknown key 'run.nam': did you mean run.name?"),
    ("model.pth=x", "unknown key 'model.pth': did you mean model.path?"),
    ("data.file=x", "unknown key 'data.file': did you mean data.files?"),
    ("data.colums.prompt=x", "unknown key 'data.colums.prompt': did you mean data.columns.prompt?"),
    ("verifier.deadline=3", "unknown key 'verifier.deadline': did you mean verifier.deadline_s?"),
    ("algorithm.kl.coef=1", "unknown key 'algorithm.kl.coef': did you mean algorithm.kl.coefficient?"),
    ("+algorithm.overlong.buffr=1", "unknown key 'algorithm.overlong.buffr': did you mean algorithm.overlong.buffer?"),
    ("+rollout.max_tokens=3", "unknown key 'rollout.max_tokens': did you mean rollout.max_new_tokens?"),
    ("++learner.zero=3", "unknown key 'learner.zero': did you mean learner.zero_stage?"),
    ("+optimizer.learning_rate=1", "unknown key 'optimizer.learning_rate': did you mean optimizer.lr?"),
    ("optimizer.lr.peak=1", "unknown key 'optimizer.lr.peak': did you mean optimizer.lr?"),
    ("weights.backnd=auto", "unknown key 'weights.backnd': did you mean weights.backend?"),
    ("++trainer.prompts=8", "unknown key 'trainer.prompts': did you mean trainer.prompts_per_step?"),
    ("checkpoint.evry=3", "unknown key 'checkpoint.evry': did you mean checkpoint.every?"),
    ("+eval.sample=8", "unknown key 'eval.sample': did you mean eval.samples?"),
    ("cluster.gpus_per_nod=8", "unknown key 'cluster.gpus_per_nod': did you mean cluster.gpus_per_node?"),
    ("+guards.ratio.treshold=3", "unknown key 'guards.ratio.treshold': did you mean guards.ratio.threshold?"),
    ("report.wandbb=off", "unknown key 'report.wandbb': did you mean report.wandb?"),
    ("+new.section.key=1", "unknown key 'new.section.key'"),
    ("~seeed", "unknown key 'seeed': did you mean seed?"),
    ("algorithm.objective.sigm_base=1", "objective maspo has no parameter 'sigm_base'; did you mean 'sigma_base'?"),
    ("+algorithm.advantage.epsiln=1", "advantage grpo has no parameter 'epsiln'; did you mean 'epsilon'?"),
]
UNKNOWN = [
    ("experiment=quickstrat", "unknown experiment 'quickstrat': did you mean quickstart?"),
    ("model=embeded", "unknown model 'embeded': did you mean embedded?"),
    ("data=gsm", "unknown data 'gsm': did you mean gsm8k?"),
    ("+algorithm=mapso", "unknown algorithm 'mapso': did you mean maspo?"),
    ("cluster=local", "unknown cluster 'local': did you mean local_cpu?"),
    ("eval.data=math5000", "eval.data=math5000: no such file in configs/data; did you mean math500?"),
    ("algorithm.objective.name=gropo", "objective 'gropo' is not known; did you mean"),
    ("algorithm.advantage.name=grpoo", "advantage 'grpoo' is not known; did you mean 'grpo'?"),
    ("verifier.extraction.gsm8k=[box]", "verifier.extraction.gsm8k='box': choose from boxed"),
]
TYPES = [
    ("seed=one", "seed: Value 'one'"),
    ("trainer.steps=1.5", "trainer.steps: Value '1.5'"),
    ("trainer.prompts_per_step=true", "trainer.prompts_per_step: Value 'True'"),
    ("rollout.temperature=hot", "rollout.temperature: Value 'hot'"),
    ("learner.gradient_checkpointing=maybe", "learner.gradient_checkpointing: Value 'maybe'"),
    ("model.path=null", "model.path: field 'model.path' is not Optional"),
    ("optimizer.betas=0.9", "optimizer.betas: "),
    ("optimizer.betas=[a,b]", "optimizer.betas[0]: Value 'a'"),
    ("guards.ratio.threshold=high", "guards.ratio.threshold: Value 'high'"),
    ("algorithm.objective=grpo", "algorithm.objective: "),
    ("algorithm.objective.alpha=[1]", "alpha=[1]: must be a finite number"),
    ("verifier.extraction.gsm8k=boxed", "verifier.extraction.gsm8k: "),
    ("data.levels=2", "data.levels: "),
    ("optimizer=adam", "optimizer is a section; set one of optimizer.betas"),
]
RANGES = [
    ("trainer.steps=0", "trainer.steps=0: must be at least 1"),
    ("optimizer.lr=-1", "optimizer.lr=-1.0: must be at least 0"),
    ("optimizer.lr=nan", "optimizer.lr=nan: must be a finite number"),
    ("rollout.temperature=0", "rollout.temperature=0.0: must be above 0"),
    ("rollout.top_p=1.01", "rollout.top_p=1.01: must be above 0 and at most 1"),
    ("learner.zero_stage=4", "learner.zero_stage=4: must be 0, 1, 2 or 3"),
    ("learner.timeout_s=0", "learner.timeout_s=0.0: must be above 0"),
    ("checkpoint.keep=0", "checkpoint.keep=0: must be at least 1"),
    ("data.heldout_share=1", "data.heldout_share=1.0: must be at least 0 and below 1"),
    ("data.levels=[6]", "data.levels=6: arithmetic has levels"),
    ("algorithm.kl.coefficient=-1", "kl.coefficient=-1.0: must be at least 0"),
    ("algorithm.overlong.factor=-1", "algorithm.overlong.factor=-1.0: must be at least 0"),
    ("algorithm.group_filter.max_refills=-1", "algorithm.group_filter.max_refills=-1: must be at least 0"),
    ("algorithm.lopti.threshold=2", "lopti.threshold=2.0: must be in (0, 1)"),
    ("verifier.memory_gib=0.1", "verifier.memory_gib=0.1: a worker needs 0.5 GiB"),
    ("verifier.port=70000", "verifier.port=70000: must be a port"),
    ("guards.ratio.action=explode", "guards.ratio.action=explode: must be one of warn"),
    ("cluster.max_restarts=-1", "cluster.max_restarts=-1: must be at least 0"),
]
COMBINATIONS = [
    ("trainer.updates_per_step=3", "trainer.updates_per_step=3: must divide the 256 responses"),
    ("learner.ranks=3", "learner.ranks=3: must divide the 64 responses of an update"),
    ("rollout.samples_per_prompt=1", "rollout.samples_per_prompt=1: the advantage 'grpo' compares"),
    ("rollout.max_context=40", "over rollout.max_context=40"),
    ("learner.micro_batch_tokens=55", "learner.micro_batch_tokens=55: must hold one whole sequence, 56 tokens"),
    ("eval.max_new_tokens=1000", "embedded has 1024 positions"),
    ("algorithm.overlong.buffer=24", "algorithm.overlong.buffer=24: must lie from 0 (off) to below"),
    ("algorithm.aggregation.constant=3", "aggregation.constant=3.0: mode token-mean does not use it"),
    ("optimizer.warmup_steps=241", "optimizer.warmup_steps=241: the run has 240 updates"),
    ("learner.offload_parameters=true", "learner.offload_parameters=true: needs learner.zero_stage=3"),
    ("rollout.tensor_parallel=2", "rollout.tensor_parallel=2: needs GPUs"),
    # 2 (keys and values) x 2 layers x 256 numbers x at least 2 bytes x 56 tokens = 114,688 bytes = 0.00011 GiB
    ("rollout.kv_cache_gib=0.0001", "rollout.kv_cache_gib=0.0001: one sequence of 56 tokens takes 0.00011 GiB"),
    ("weights.backend=nccl", "weights.backend=nccl: needs GPUs"),
    ("cluster.colocate=true", "cluster.colocate=True: needs GPUs"),
    ("cluster.nodes=2", "cluster.nodes=2: weights reach engines on CPUs through one machine's memory"),
    ("model.revision=main", "model.revision=main: is for a hub model, embedded is a directory"),
    ("verifier.correct_reward=0", "verifier.correct_reward=0.0: must be above wrong_reward"),
    ("verifier.function=reward", "verifier.function='reward': write package.module:function"),
    ("verifier.function=no.such:reward", "verifier.function=no.such:reward: no module no.such"),
    ("guards.length.action=skip", "guards.length.action=skip: only ratio and grad_norm"),
    ("data.max_prompt_tokens=2", "data.max_prompt_tokens=2: all 10000 train prompts of 'arithmetic' are longer"),
    ("data.files=a.jsonl", "data.files: arithmetic makes its own problems"),
    ("run.name=a/b", "run.name=a/b: must be one word without a slash"),
    ("run.name=..", "run.name=..: must be one word"),
    ("run.dir=/proc", "run.dir=/proc: /proc cannot be written"),
    ("resume=latest", "resume=latest: no such checkpoint"),
    ("model.path=/nowhere", "model.path=/nowhere: no such directory"),
]
ALL = [*MISSPELT, *UNKNOWN, *TYPES, *RANGES, *COMBINATIONS]


def refusal(overrides: list[str]) -> str:
    """The one line with which `maspo-rl train` refuses the quickstart with these over it."""
    with pytest.raises(InputError) as caught:
        prepare(checked_config(["experiment=quickstart", *overrides]))
    assert len(str(caught.value).splitlines()) == 1, str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(("override", "line"), ALL, ids=[override for override, _ in ALL])
def test_a_wrong_configuration(override: str, line: str, tmp_path: Path) -> None:
    where = [] if override.startswith("run.dir") else [f"run.dir={tmp_path}"]
    assert line in refusal([override, *where])


ROWS = "".join(json.dumps({"problem": f"{i} + 1 = ?", "answer": str(i + 1)}) + "\n" for i in range(300))


@pytest.mark.parametrize(
    ("name", "content", "more", "line"),
    [
        ("none.jsonl", None, [], "none.jsonl: no such file"),
        ("rows.csv", ROWS, [], "rows.csv: must end in .jsonl, .json or .parquet"),
        ("rows.jsonl", "{problem: 1}\n", [], "rows.jsonl, line 1: is not JSON"),
        ("rows.jsonl", '["1 + 1", "2"]\n', [], "rows.jsonl, line 1: holds a list"),
        ("rows.json", ROWS, [], "rows.json: is not JSON"),
        ("rows.parquet", ROWS, [], "rows.parquet: is not a Parquet file"),
        ("rows.jsonl", "", [], "'local' has no train problems"),
        ("rows.jsonl", ROWS, ["data.columns.gold=anser"], "data.columns.gold=anser: no 'anser' in"),
        ("rows.jsonl", ROWS, ["data.columns.prompt=problem.text"], "data.columns.prompt=problem.text: no 'text' in"),
        ("rows.jsonl", ROWS, ["data.levels=[hard]"], "data.levels=['hard']: needs data.columns.level"),
    ],
)
def test_a_wrong_data_file(name: str, content: str | None, more: list[str], line: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    local = ["data=local", "data.max_prompt_tokens=64", f"data.files={tmp_path / name}", f"run.dir={tmp_path}"]
    assert line in refusal([*local, *more])


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (None, "has no config.json"),
        ("{", "its config.json holds no JSON object"),
        ("[]", "its config.json holds no JSON object"),
        ('{"max_position_embeddings": 50}', "has 50 positions; shorten data.max_prompt_tokens"),
        ('{"model_type": "qwen3"}', "no tokenizer could be loaded from it"),
        ('{"model_type": "mistral", "sliding_window": 40}', "a sliding window below the context of 56 tokens"),
        # Qwen2.5 names a window that it does not use
        ('{"model_type": "qwen2", "sliding_window": 40, "use_sliding_window": false}', "no tokenizer could be loaded"),
        ('{"model_type": "gemma2", "attn_logit_softcapping": 50.0}', "its attention has a soft cap"),
    ],
)
def test_a_wrong_model_directory(content: str | None, line: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    assert line in refusal([f"model.path={tmp_path}", f"run.dir={tmp_path}"])


def test_several_wrong_keys_are_a_line_each(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        checked_config(["sed=1", "+trainer.step=2", "algorithm=mapso", "data.problem=3", f"run.dir={tmp_path}"])
    assert [line.split("'")[1] for line in str(caught.value).splitlines()] == [
        "sed",
        "trainer.step",
        "mapso",
        "data.problem",
    ]


@pytest.mark.parametrize(
    "overrides",
    [
        ["+rollout.temprature=1"],
        ["algorithm=mapso"],
        ["trainer.steps=many"],
        ["learner.micro_batch_tokens=8"],
        ["data=local", "data.max_prompt_tokens=64", "data.files=/none.jsonl"],
        ["model.path=/nowhere"],
    ],
)
def test_the_command_line_refuses_in_time_and_without_ray(overrides: list[str], tmp_path: Path) -> None:
    program = (
        "import sys; from maspo_rl.cli import main; code = main(sys.argv[1:]);"
        "sys.exit(99 if {'ray', 'vllm', 'deepspeed'} & set(sys.modules) else code)"
    )
    command = [sys.executable, "-c", program, "train", "experiment=quickstart", f"run.dir={tmp_path}", *overrides]
    before = os.times()
    started = time.monotonic()
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    after = os.times()
    assert run.returncode == 2, run.stderr
    assert len(run.stderr.splitlines()) == 1
    assert overrides[-1].lstrip("+").partition("=")[0] in run.stderr
    # On a machine that is busy with something else, the processor's time is what the check itself took.
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    assert min(time.monotonic() - started, spent) < 10
