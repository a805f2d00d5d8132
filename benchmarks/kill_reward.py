"""The reward of `benchmarks.kills`: judged in a verifier worker, which suffers faults on order there."""

from maspo_rl.cluster.faults import fault_point


def reward(output: str, gold: str, dataset: str) -> float:
    """1 for the gold in a box."""
    fault_point("verifier", "judge")
    return float(f"\\boxed{{{gold}}}" in output)
