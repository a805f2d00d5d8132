"""`maspo-rl hygiene data=... benchmarks=[...]`: what of a training set stands in benchmarks, repeats or contradicts."""

from __future__ import annotations

import json
from pathlib import Path

from maspo_rl.config.evaluation import load_eval
from maspo_rl.data import load_prompts


def main(overrides: list[str]) -> int:
    """Writes `hygiene.md` and `hygiene.json` into `<run.dir>/<run.name>` and prints the first. 0 when done."""
    from maspo_rl.evaluation.benchmarks import benchmark_config, load_benchmark  # noqa: PLC0415
    from maspo_rl.evaluation.hygiene import inspect, markdown, untokenised  # noqa: PLC0415
    from maspo_rl.verifier import Verifier  # noqa: PLC0415

    command = load_eval(overrides, name=lambda config: f"hygiene-{config.data.name}")
    config = command.config
    benchmarks = {
        name: load_benchmark(*untokenised(benchmark_config(name, settings)), limit=None)
        for name, settings in command.benchmarks.items()
    }
    data, tokenizer = untokenised(config.data)
    with Verifier(config.verifier) as verifier:
        training = load_prompts(data, tokenizer, split="train", limit=None, check_golds=verifier.check_golds)
    report = inspect(training, benchmarks)
    folder = Path(config.run.dir) / (config.run.name or "")
    folder.mkdir(parents=True, exist_ok=True)
    text = markdown(report, config.data.name)
    (folder / "hygiene.md").write_text(text, encoding="utf-8")
    (folder / "hygiene.json").write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{text}\n{folder / 'hygiene.md'}")
    return 0
