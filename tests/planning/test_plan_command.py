"""`maspo-rl plan`: everything that is wrong at once, one JSON object for machines, and nothing started."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from descriptions import QWEN_7B

from maspo_rl.cli import main


def planned(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = main(["plan", "--json", *arguments])
    return code, json.loads(capsys.readouterr().out)


@pytest.fixture
def qwen(tmp_path: Path) -> str:
    """Qwen2.5-Math-7B's description with the embedded policy's tokenizer; no weights."""
    from maspo_rl.data import embedded_policy_path  # noqa: PLC0415

    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        (tmp_path / name).write_bytes((embedded_policy_path() / name).read_bytes())
    (tmp_path / "config.json").write_text(json.dumps(QWEN_7B))
    return f"model.path={tmp_path}"


def test_the_quickstart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """32 prompts x 8 samples in 4 updates: 64 responses each; 60 steps are 15,360 responses and 240 updates."""
    code, plan = planned(capsys, "experiment=quickstart", "model.dtype=float32", f"run.dir={tmp_path}")
    assert (code, plan["problems"], plan["warnings"]) == (0, [], [])
    batch = plan["sections"]["batch"]
    assert (batch["responses_per_step"], batch["responses_per_update"]) == (256, 64)
    assert (batch["responses"], batch["updates"]) == (15_360, 240)
    assert batch["training_prompts"] == 10_000
    assert plan["sections"]["moved_per_step"]["weights_bytes"] == 2 * 4 * 1_145_344  # to two engines


def test_a_table_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "experiment=quickstart", "model.dtype=float32", f"run.dir={tmp_path}"]) == 0
    screen = capsys.readouterr().out
    assert "responses per step                 256" in screen
    assert "4.6 MB" in screen


def test_every_problem_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From the checks, the algorithm, the model, the data and the plan itself."""
    wrong = ["learner.micro_batch_tokens=8", "algorithm.objective.alhpa=1", "model.path=/nowhere"]
    local = ["data=local", "data.files=/none.jsonl", "data.max_prompt_tokens=32"]
    assert main(["plan", "experiment=quickstart", "--gpu", "H100", *wrong, *local, f"run.dir={tmp_path}"]) == 2
    lines = [line.removeprefix("maspo-rl: ") for line in capsys.readouterr().err.splitlines()]
    for start in (
        "learner.micro_batch_tokens=8: must hold",
        "algorithm: objective maspo has no parameter 'alhpa'",
        "model.path=/nowhere: no such directory",
        "data.files=/none.jsonl: no such file",
        "--gpu H100: cluster.gpus_per_node=0",
    ):
        assert sum(line.startswith(start) for line in lines) == 1, (start, lines)


def test_what_does_not_divide_is_explained_all_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, plan = planned(capsys, "experiment=quickstart", "trainer.updates_per_step=512", f"run.dir={tmp_path}")
    assert (code, len(plan["problems"])) == (2, 1)
    assert "memory" in plan["sections"]


def test_a_tokenizer_without_a_template(qwen: str, capsys: pytest.CaptureFixture[str]) -> None:
    (Path(qwen.partition("=")[2]) / "chat_template.jinja").unlink()
    code, plan = planned(capsys, qwen, "experiment=qwen2.5_math_7b")
    assert code == 2
    (problem,) = plan["problems"]
    assert "has no chat template; use data.template=plain" in problem


def test_problems_are_in_the_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    code, plan = planned(capsys, "trainer.step=3", "+sed=1")
    assert code == 2
    assert [line.partition(":")[0] for line in plan["problems"]] == ["unknown key 'trainer.step'", "unknown key 'sed'"]


def test_a_large_model_on_a_known_gpu(qwen: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["experiment=qwen2.5_math_7b", qwen, "--gpu", "H100"]
    code, plan = planned(capsys, *arguments)
    assert code == 0, plan["problems"]
    memory, times = plan["sections"]["memory"]["gpu_process_gib"], plan["sections"]["time"]
    # 7.6B parameters over 8 ranks under ZeRO 3: 8 bytes of moments each
    assert memory["learner"]["moments"] == pytest.approx(7_615_616_512 * 8 / 8 / 2**30, abs=0.01)
    # half of a GPU as the driver reports it
    assert memory["engine"]["total"] == pytest.approx(0.5 * 79.6)
    assert times["half_the_limit"]["step_s"] < times["limit"]["step_s"]
    assert times["assumptions"]
    # the same without sharding: 20 bytes a parameter are more than the GPU has
    code, plan = planned(capsys, *arguments, "learner.zero_stage=0")
    assert code == 2
    assert [line.partition(":")[0] for line in plan["problems"]] == ["memory"]


def test_a_hub_that_does_not_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What needs no model is planned all the same."""
    import huggingface_hub  # noqa: PLC0415

    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    code, plan = planned(capsys, "model.path=nobody/nothing", "data.max_prompt_tokens=64", f"run.dir={tmp_path}")
    assert code == 0
    assert "http://127.0.0.1:9 does not answer" in plan["warnings"][0]
    assert set(plan["sections"]) == {"run", "batch", "tokens_a_sequence"}


def test_nothing_is_started(tmp_path: Path) -> None:
    """Nor is what a run is made of imported: a plan is there in seconds. torch's compiler and sympy come with the code
    of transformers' models."""
    program = (
        "import sys; from maspo_rl.cli import main; code = main(sys.argv[1:]);"
        "sys.exit(99 if {'vllm', 'deepspeed', 'ray', 'torch._dynamo', 'sympy'} & set(sys.modules) else code)"
    )
    command = [sys.executable, "-c", program, "plan", "experiment=quickstart", f"run.dir={tmp_path}"]
    assert subprocess.run(command, capture_output=True, check=False, timeout=120).returncode == 0
    assert list(tmp_path.iterdir()) == []
