"""Data sets to prompts, and the order in which a run meets them."""

from maspo_rl.data.demonstrations import Demonstration, load_demonstrations
from maspo_rl.data.loading import GoldCheck, PromptSet, check_data, load_prompts
from maspo_rl.data.policy import embedded_policy_path, load_tokenizer, resolve_model
from maspo_rl.data.sampler import PromptSampler
from maspo_rl.data.stream import PromptStream

__all__ = [
    "Demonstration",
    "GoldCheck",
    "PromptSampler",
    "PromptSet",
    "PromptStream",
    "check_data",
    "embedded_policy_path",
    "load_demonstrations",
    "load_prompts",
    "load_tokenizer",
    "resolve_model",
]
