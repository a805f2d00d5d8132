"""Every impossible run is named before anything starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from maspo_rl.config.check import Catalogue, check
from maspo_rl.config.derived import run_directory
from maspo_rl.config.load import save
from maspo_rl.config.schema import Config

Change = Callable[..., Config]

GPUS = ["cluster.gpus_per_node=8", "cluster.colocate=true"]
APART = ["cluster.gpus_per_node=8", "cluster.colocate=false"]


def test_a_possible_run_has_no_problem(catalogue: Catalogue, change: Change) -> None:
    assert check(change(), catalogue) == []


@pytest.mark.parametrize(
    ("overrides", "line"),
    [
        (["rollout.samples_per_prompt=1"], "rollout.samples_per_prompt=1: the advantage 'grpo' compares"),
        (["rollout.samples_per_prompt=0"], "rollout.samples_per_prompt=0: must be at least 1"),
        (["rollout.temperature=0"], "rollout.temperature=0.0: must be above 0"),
        (["rollout.top_p=1.5"], "rollout.top_p=1.5: must be above 0 and at most 1"),
        (["optimizer.lr=-1e-6"], "optimizer.lr=-1e-06: must be at least 0"),
        (["optimizer.lr=.nan"], "optimizer.lr=nan: must be a finite number"),
        (["optimizer.betas=[0.9,1.0]"], "optimizer.betas=[0.9, 1.0]: must be two numbers in [0, 1)"),
        (["optimizer.schedule=cosin"], "optimizer.schedule=cosin: must be one of constant, cosine, linear"),
        (["optimizer.warmup_steps=9", "trainer.steps=4", "trainer.updates_per_step=2"], "the run has 8 updates"),
        (["learner.zero_stage=4"], "learner.zero_stage=4: must be 0, 1, 2 or 3"),
        (["learner.offload_optimizer=true"], "needs learner.zero_stage of 1 to 3, is 0"),
        (["learner.offload_parameters=true", "learner.zero_stage=2"], "needs learner.zero_stage=3, is 2"),
        # 8 prompts x 4 responses = 32; 32 / 8 = 4 responses an update.
        (["trainer.updates_per_step=5"], "must divide the 32 responses of a step"),
        (["trainer.updates_per_step=8", "learner.ranks=3"], "must divide the 4 responses of an update"),
        (
            ["rollout.max_context=63"],
            "data.max_prompt_tokens=32 + rollout.max_new_tokens=32: over rollout.max_context=63",
        ),
        (
            ["rollout.max_context=64", "eval.max_new_tokens=33"],
            "in evaluation, max_prompt_tokens=32 + max_new_tokens=33",
        ),
        (["rollout.max_new_tokens=97"], "a context of 129 tokens"),  # the policy has 128 positions
        (["eval.max_new_tokens=97"], "a context of 129 tokens"),
        (["learner.micro_batch_tokens=63"], "must hold one whole sequence, 64 tokens"),
        (["algorithm.overlong.buffer=32"], "must lie from 0 (off) to below rollout.max_new_tokens=32"),
        (["model.path=./nowhere"], "model.path=./nowhere: no such directory"),
        (["model.path=embeded"], "model.path=embeded: no such directory"),
        (["model.path=tests/nowhere"], "model.path=tests/nowhere: no such directory"),  # `tests` is one, so no hub name
        (["model.path=tests"], "model.path=tests: has no config.json"),
        (["model.dtype=float16"], "model.dtype=float16: must be one of auto, float32, bfloat16"),
        (["eval.data=gsm8"], "eval.data=gsm8: no such file in configs/data; did you mean gsm8k?"),
        (["algorithm.objective.name=masp"], "algorithm: objective 'masp' is not known; did you mean 'maspo'?"),
        (["algorithm.objective.alhpa=1"], "algorithm: objective maspo has no parameter 'alhpa'; did you mean 'alpha'?"),
        (["algorithm.objective.alpha=high"], "algorithm: objective maspo: alpha='high': must be"),
        (["algorithm.objective.alpha=-1"], "alpha=-1.0: must be at least 0"),
        (
            ["algorithm.advantage.name=grpoo"],
            "algorithm.advantage: advantage 'grpoo' is not known; did you mean 'grpo'?",
        ),
        (["algorithm.kl.estimator=k9"], "algorithm.kl.estimator=k9: must be one of k1, k2, k3"),
        (["weights.backend=nccl"], "weights.backend=nccl: needs GPUs, cluster.gpus_per_node=0"),
        (["cluster.nodes=2"], "cluster.nodes=2: weights reach engines on CPUs through one machine's memory"),
        ([*GPUS, "learner.ranks=16"], "need 16 shared GPUs, cluster.nodes=1 x cluster.gpus_per_node=8 has 8"),
        ([*APART, "learner.ranks=8"], "need 9 GPUs, cluster.nodes=1 x cluster.gpus_per_node=8 has 8"),
        ([*APART, "weights.backend=ipc"], "engine and learner must share GPUs"),
        ([*GPUS, "weights.backend=nccl"], "cannot join two processes on one GPU"),
        ([*GPUS, "rollout.tensor_parallel=2"], "rollout.tensor_parallel=2: must divide the 3 attention heads"),
        (["verifier.workers=0"], "verifier.workers=0"),
        (["verifier.extraction={default: [boxes]}"], "boxes"),
        (["run.name=a/b"], "run.name=a/b: must be one word without a slash"),
        (["run.dir=/dev/null/runs"], "run.dir=/dev/null/runs: /dev/null cannot be written"),
        (["run.dir=/proc"], "run.dir=/proc: /proc cannot be written"),
        (["resume=runs/none/checkpoints/step_3"], "resume=runs/none/checkpoints/step_3: no such checkpoint"),
    ],
)
def test_an_impossible_run_is_one_line(
    overrides: list[str], line: str, catalogue: Catalogue, change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    problems = check(change(*overrides), catalogue)
    assert len(problems) == 1, problems
    assert line in problems[0]
    assert "\n" not in problems[0]


def test_all_problems_are_told_at_once(catalogue: Catalogue, change: Change) -> None:
    overrides = [
        "trainer.updates_per_step=5",
        "model.path=./nowhere",
        "run.dir=/dev/null",
        "optimizer.warmup_steps=9999",
    ]
    assert len(check(change(*overrides), catalogue)) == 4


def test_an_advantage_of_single_responses_needs_no_group(catalogue: Catalogue, change: Change) -> None:
    config = change("rollout.samples_per_prompt=1")
    config.algorithm.advantage = {"name": "reinforce"}
    assert check(config, catalogue) == []


def test_a_hub_name_needs_no_network(catalogue: Catalogue, change: Change) -> None:
    assert check(change("model.path=Qwen/Qwen2.5-Math-7B"), catalogue) == []


@pytest.fixture
def finished(change: Change) -> Change:
    """The same, where the run's directory holds its configuration and a checkpoint already."""
    config = change()
    (run_directory(config) / "checkpoints" / "step_3").mkdir(parents=True)
    save(config, run_directory(config) / "config.yaml")
    return change


def test_a_run_goes_on_with_more_steps_on_other_machines(catalogue: Catalogue, finished: Change) -> None:
    assert check(finished("trainer.steps=999", "learner.ranks=2", "checkpoint.every=5"), catalogue) == []


def test_another_run_does_not_fall_into_the_directory(catalogue: Catalogue, finished: Change) -> None:
    (problem,) = check(finished("optimizer.lr=0.5", "seed=0"), catalogue)
    assert "holds a run with optimizer.lr=1e-06 (now 0.5); choose another run.name" in problem
    (problem,) = check(finished("resume=never"), catalogue)
    assert "holds a run already; choose another run.name" in problem


def test_a_checkpoint_starts_a_run_of_another_name(catalogue: Catalogue, finished: Change) -> None:
    branch = [f"resume={run_directory(finished())}/checkpoints/step_3", "optimizer.lr=0.5"]
    assert check(finished(*branch, "run.name=branch"), catalogue) == []
    (problem,) = check(finished(*branch), catalogue)
    assert "optimizer.lr=1e-06 (now 0.5)" in problem


def test_the_checks_leave_nothing_behind(catalogue: Catalogue, change: Change, tmp_path: Path) -> None:
    check(change(), catalogue)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["policy"]
