"""From a command line and the files in `configs/` to one `Config`, and from there to a run's `config.yaml` and back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from maspo_rl.config.data import DataConfig
from maspo_rl.config.errors import InputError, naming
from maspo_rl.config.keys import CONFIGS, GROUPS, choices, leaves, nearest, open_keys
from maspo_rl.config.schema import Config

ConfigStore.instance().store(name="schema", node=Config)


def load(overrides: list[str], method: str | None = None) -> Config:
    """Composes `configs/config.yaml` with `overrides` in Hydra's grammar: `key=value` and `group=name`.

    A leading `+` or `++` is allowed and means nothing: every key exists already, and one that does not is refused
    whatever stands before it. A run without a name is `<experiment>-<method>-s<seed>`, the method being its algorithm
    unless given. Raises `InputError`, one line for each override that is wrong.
    """
    accepted: list[str] = []
    problems: list[str] = []
    parsed: list[Override] = []
    for text in overrides:
        try:
            override = _parse(text)
            accepted.append(_accept(override, text))
            parsed.append(override)
        except InputError as problem:
            problems.append(str(problem))
    if problems:
        raise InputError("\n".join(problems))
    try:
        with initialize_config_dir(config_dir=str(CONFIGS.resolve()), version_base="1.3"):
            config = _to_config(compose("config", overrides=accepted))
    except (HydraException, OmegaConfBaseException) as error:
        raise InputError(_one_line(error, [override.key_or_group for override in parsed])) from error
    if config.run.name is None:
        chosen = {override.key_or_group: override.value() for override in parsed}
        subject = chosen.get("experiment") or Path(config.model.path).name
        config.run.name = f"{subject}-{method or config.algorithm.name}-s{config.seed}"
    return config


def load_data(name: str) -> DataConfig:
    """The data set `configs/data/<name>.yaml`, as `eval.data` names it."""
    return load([f"data={name}"]).data


def save(config: Config, path: Path) -> None:
    """Writes the whole resolved `config` as YAML."""
    with naming(path):
        OmegaConf.save(OmegaConf.structured(config), path)


def read(path: Path) -> Config:
    """What `save` wrote. Raises `InputError` where the file does not fit the schema."""
    try:
        return _to_config(OmegaConf.merge(OmegaConf.structured(Config), OmegaConf.load(path)))
    except OmegaConfBaseException as error:
        raise InputError(f"{path}: {_one_line(error)}: written by another version of maspo_rl?") from error


def _to_config(composed: Any) -> Config:
    config = OmegaConf.to_object(composed)
    assert isinstance(config, Config)
    return config


def _parse(text: str) -> Override:
    try:
        override: Override = OverridesParser.create().parse_override(text)
    except HydraException as error:
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"'{text}' is not of the form key=value ({reason}); quote special characters: key='value'"
        ) from error
    return override


def _accept(override: Override, text: str) -> str:
    """The override as Hydra is to see it. Raises `InputError` where it names nothing that exists."""
    key = override.key_or_group
    groups, known, opened = set(GROUPS), {name for name, _ in leaves()}, open_keys()
    if override.package is not None:
        raise InputError(f"'{text}': packages (@) are not used here; write key=value")
    is_open = any(key.startswith(f"{name}.") for name in opened)
    if key not in groups | known and not is_open:
        inside = sorted(name for name in known if name.startswith(f"{key}."))
        if inside:
            raise InputError(f"'{text}': {key} is a section; set one of {', '.join(inside)}")
        raise InputError(f"unknown key '{key}': {nearest(key, groups | known)}")
    if override.type is OverrideType.DEL:
        raise InputError(f"'{text}': keys are never removed; write {key}=null or leave it out")
    if override.is_sweep_override():
        raise InputError(f"'{text}': one value a run; write a list as {key}=[a,b]")
    if key in groups:
        return f"{key}={_choice(key, override.value())}"
    return f"{'++' if is_open else ''}{key}={text.split('=', 1)[1]}"


def _choice(group: str, value: Any) -> str:
    if value is None and group == "experiment":
        return "null"
    if not isinstance(value, str) or value not in choices(group):
        remedy = nearest(str(value), choices(group))
        also = f"; a directory or hub name goes into model.path={value}" if group == "model" else ""
        raise InputError(f"unknown {group} '{value}': {remedy}{also}")
    return value


def _one_line(error: BaseException, keys: Sequence[str] = ()) -> str:
    """The innermost cause, without Hydra's and OmegaConf's indented details, and the key (of `keys`) it is about."""
    while error.__cause__ is not None:
        error = error.__cause__
    message = str(error).partition("\n")[0]
    key = getattr(error, "full_key", None)
    # Below a mapping with names of its own OmegaConf gives the last part of the key alone.
    key = next((whole for whole in keys if key and whole.endswith(f".{key}")), key)
    return f"{key}: {message}" if key else message
