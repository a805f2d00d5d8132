"""What a plan must know of a model and its tokenizer, from their descriptions alone: no weight is read."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maspo_rl.config.errors import InputError
from maspo_rl.config.schema import Config
from maspo_rl.data import resolve_model
from maspo_rl.data.template import render

_HUB_DEADLINE_S = 5.0
_PROBLEM, _ANSWER = "What is 1 + 1?", "It is 2."


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Sizes of a causal language model; `parameters` counts tied ones once, `head_norms`: on queries and keys."""

    parameters: int
    tensors: int
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    positions: int | None
    head_norms: bool = False


def readable_source(model_path: str, revision: str | None) -> str:
    """A directory to read a model's description from, of a hub model the copy on this machine; else its hub name.

    Raises ConnectionError, in one line, where there is no copy and the hub does not answer one request.
    """
    source = resolve_model(model_path)
    if Path(source).is_dir():
        return source
    import huggingface_hub  # noqa: PLC0415  only hub models pay for it

    found = huggingface_hub.try_to_load_from_cache(source, "config.json", revision=revision)
    if isinstance(found, str):
        return str(Path(found).parent)
    hub = huggingface_hub.constants.ENDPOINT
    try:  # the hub's own client would try for half a minute
        urllib.request.urlopen(urllib.request.Request(hub, method="HEAD"), timeout=_HUB_DEADLINE_S).close()
    except urllib.error.HTTPError:
        pass  # an answer
    except OSError as error:
        raise ConnectionError(
            f"model.path={model_path}: is not on this machine and {hub} does not answer ({error}); what needs it is "
            "left out: name a local copy to have it"
        ) from error
    return source


def read_shape(source: str, revision: str | None) -> ModelShape:
    """The sizes in config.json; parameters are counted in closed form or, of a kind that has none here, on a model
    built without storage.

    Raises InputError where the description cannot be read.
    """
    from transformers import PreTrainedConfig  # noqa: PLC0415  seconds that a misspelt key must not cost

    try:
        description, _ = PreTrainedConfig.get_config_dict(source, revision=revision)
        return _closed_form(description) or _built(source, revision)
    except (OSError, ValueError, KeyError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise InputError(f"model.path={source}: its config.json describes no causal model ({reason})") from error


def _closed_form(description: dict[str, Any]) -> ModelShape | None:
    """The sizes of a Llama, Qwen2 or Qwen3 whose config.json names them all; None for any other model.

    Their configuration classes would fill in defaults, but import the code of the models for a docstring: ten seconds.
    """
    kind, head = description.get("model_type"), description.get("head_dim")
    names = ("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads")
    sizes = [size for name in (*names, "vocab_size") if isinstance(size := description.get(name), int)]
    if kind not in ("llama", "qwen2", "qwen3") or len(sizes) != 6 or min(sizes) < 1 or (kind == "qwen3" and not head):
        return None
    layers, hidden, inner, heads, kv_heads, vocabulary = sizes
    head = head or hidden // heads
    queries, keys, tied = head * heads, head * kv_heads, description.get("tie_word_embeddings", False)
    # A layer: its matrices, two normalisations, and what the kind or the description adds.
    count, tensors = 2 * hidden * (queries + keys) + 3 * hidden * inner + 2 * hidden, 7 + 2
    if kind == "qwen2":
        count, tensors = count + queries + 2 * keys, tensors + 3
    elif description.get("attention_bias"):
        count, tensors = count + queries + 2 * keys + hidden, tensors + 4
    if kind == "llama" and description.get("mlp_bias"):
        count, tensors = count + 2 * inner + hidden, tensors + 3
    if kind == "qwen3":
        count, tensors = count + 2 * head, tensors + 2
    return ModelShape(
        parameters=layers * count + (1 if tied else 2) * vocabulary * hidden + hidden,
        tensors=layers * tensors + (2 if tied else 3),
        layers=layers,
        hidden=hidden,
        intermediate=inner,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head,
        vocabulary=vocabulary,
        positions=description.get("max_position_embeddings"),
        head_norms=kind == "qwen3",
    )


def _built(source: str, revision: str | None) -> ModelShape:
    """The sizes of any causal model, from its own code."""
    import torch  # noqa: PLC0415
    from transformers import AutoConfig, AutoModelForCausalLM  # noqa: PLC0415

    description = AutoConfig.from_pretrained(source, revision=revision)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(description)
    text: Any = description.get_text_config()
    return ModelShape(
        parameters=model.num_parameters(),
        tensors=len(list(model.parameters())),
        layers=text.num_hidden_layers,
        hidden=text.hidden_size,
        intermediate=getattr(text, "intermediate_size", None) or 4 * text.hidden_size,
        heads=text.num_attention_heads,
        kv_heads=getattr(text, "num_key_value_heads", None) or text.num_attention_heads,
        head_dim=getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads,
        vocabulary=text.vocab_size,
        positions=getattr(text, "max_position_embeddings", None),
        head_norms=any("q_norm" in name for name, _ in model.named_parameters()),
    )


def declared_ends(source: str, revision: str | None) -> list[int]:
    """The end tokens of a model's generation_config.json; none where it has none."""
    from transformers import GenerationConfig  # noqa: PLC0415

    try:
        ends = GenerationConfig.from_pretrained(source, revision=revision).eos_token_id
    except OSError:  # the model ships no generation config
        return []
    return sorted(ends) if isinstance(ends, list) else [] if ends is None else [ends]


def tokens_section(config: Config, tokenizer: Any, declared: list[int], vocabulary: int) -> dict[str, Any]:
    """Special tokens and the prompt as the policy sees it. The engine ends at the tokenizer's end and the declared.

    Raises InputError for a tokenizer that cannot render the prompt.
    """
    end, pad = tokenizer.eos_token_id, tokenizer.pad_token_id
    prompt = tokenizer.decode(render([_PROBLEM], config.data, tokenizer)[0])
    closed, opened = _turns(tokenizer) if config.data.template == "chat" else ("", "")
    return {
        "vocabulary": f"{len(tokenizer):,} tokens, {vocabulary:,} rows in the model",
        "tokenizer_end": _named(tokenizer, [end]),
        "generation_config_ends": _named(tokenizer, declared),
        "response_ends_at": _named(tokenizer, sorted({end, *declared} - {None})),
        "padding": _named(tokenizer, [end if pad is None else pad]),
        "prompt": prompt,
        "generation_prompt": opened.removeprefix(closed),
    }


def token_warnings(config: Config, tokenizer: Any, declared: list[int], vocabulary: int) -> Iterator[str]:
    """One line for each trap that tokenizer, template and generation config set together."""
    end = tokenizer.eos_token_id
    ends = sorted({end, *declared} - {None})
    if not ends:
        yield "neither tokenizer nor generation_config.json names an end token: every response runs to the limit"
    if declared and end not in declared:
        yield (
            f"two ends: the tokenizer's {_named(tokenizer, [end])} is not among generation_config.json's "
            f"{_named(tokenizer, declared)}; both end a response here, other tools may stop at one alone"
        )
    if len(tokenizer) > vocabulary:
        yield f"the tokenizer has {len(tokenizer)} tokens, the model {vocabulary} rows: it is another model's tokenizer"
    if config.data.template != "chat":
        return
    closed, opened = _turns(tokenizer)
    if opened == closed:
        yield "the chat template ignores add_generation_prompt: the policy has to open its own turn"
    begin = tokenizer.bos_token
    if begin and opened.startswith(begin * 2):
        yield f"the prompt begins with {begin} twice"
    answered = tokenizer.apply_chat_template(
        [{"role": "user", "content": _PROBLEM}, {"role": "assistant", "content": _ANSWER}], tokenize=False
    )
    closing = tokenizer(answered.rpartition(_ANSWER)[2], add_special_tokens=False)["input_ids"]
    if closing and closing[0] not in ends:
        yield (
            f"the chat template ends a turn with {_named(tokenizer, closing[:1])}, which ends no response "
            f"({_named(tokenizer, ends)} do): a policy that writes it talks on to the limit; add it to eos_token_id in "
            "the model's generation_config.json"
        )


def _turns(tokenizer: Any) -> tuple[str, str]:
    """A user's turn as the template writes it, and with the policy's turn opened after it."""
    turn = [{"role": "user", "content": _PROBLEM}]
    closed, opened = (tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=on) for on in (0, 1))
    return closed, opened


def _named(tokenizer: Any, ids: list[int]) -> str:
    return ", ".join(f"{tokenizer.convert_ids_to_tokens(i)} ({i})" for i in ids if i is not None) or "none"
