"""From a problem to the token ids that the policy continues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from maspo_rl.config.data import DataConfig
from maspo_rl.config.errors import InputError


def check_template(config: DataConfig) -> None:
    """Raises InputError for a template that cannot work, whatever the tokenizer."""
    if config.template not in ("chat", "plain"):
        raise InputError(f"data.template={config.template}: must be chat or plain")
    if config.template == "plain":
        if config.plain_template.count("{problem}") != 1:
            raise InputError(
                f"data.plain_template={config.plain_template!r}: must hold {{problem}} once, where the problem goes"
            )
        if config.system is not None:
            raise InputError("data.system: belongs to data.template=chat; write it into data.plain_template")


def render(problems: Sequence[str], config: DataConfig, tokenizer: Any) -> list[tuple[int, ...]]:
    """The prompt's token ids for each problem.

    `chat` is the tokenizer's own rendering of a user turn, after `config.system` as a system turn, open for the answer.
    `plain` is `config.plain_template`, with the tokenizer's beginning-of-text token where it has one. The instruction
    follows the problem on a line of its own in both. Raises InputError for a tokenizer without a chat template.
    """
    if not problems:
        return []
    ending = f"\n{config.instruction}" if config.instruction else ""
    if config.template == "plain":
        texts = [config.plain_template.replace("{problem}", problem + ending) for problem in problems]
        return [tuple(ids) for ids in tokenizer(texts)["input_ids"]]
    if not tokenizer.chat_template:
        raise InputError(
            f"data.template=chat: the tokenizer of {tokenizer.name_or_path} has no chat template; use "
            "data.template=plain with data.plain_template"
        )
    opening = [{"role": "system", "content": config.system}] if config.system else []
    chats = [[*opening, {"role": "user", "content": problem + ending}] for problem in problems]
    rendered = tokenizer.apply_chat_template(chats, add_generation_prompt=True, return_dict=True)
    return [tuple(ids) for ids in rendered["input_ids"]]
