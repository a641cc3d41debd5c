"""What a suite asks for: defaults, then ``suite.yaml``, then the command line or a notebook's ``overrides``."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from searcheval.errors import InputError, nearest
from searcheval.io import Path_, reading
from searcheval.metrics import Conventions, Measure, parse_measure
from searcheval.schema import MAX_GRADE

CODE = re.compile(r"^(?P<file>.+\.py):(?P<factory>[A-Za-z_]\w*)$")
ACCEPTED = "@accepted"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ConventionSettings(_Strict):
    """See :class:`searcheval.Conventions`."""

    no_relevant: Literal["perfect", "zero", "skip"] = "perfect"
    judged_only: bool = False


class GateSettings(_Strict):
    """When a pull request may pass."""

    system: str | None = None
    baseline: str | None = None
    measures: list[str] = []
    max_drop: float = Field(default=0.02, ge=0, allow_inf_nan=False)


class Settings(_Strict):
    """A suite's settings, whole. Paths are relative to the folder the settings were read from."""

    name: str = Field(default="suite", pattern=r"^\w[\w.+ -]*$")
    queries: str | None = None
    documents: str | None = None
    qrels: str = "qrels.csv"
    max_grade: int = Field(default=MAX_GRADE, ge=1)
    negative: Literal["error", "zero"] = "error"
    where: dict[str, Any] = {}
    systems: dict[str, str] = {}
    baseline: str | None = None
    k: int = Field(default=100, ge=1)
    depth: int = Field(default=10, ge=1)
    measures: list[str] = Field(default=["nDCG@10", "RR", "R@20", "P@10", "Judged@10", "Abstained"], min_length=1)
    primary: str | None = None
    segments: list[str] = []
    conventions: ConventionSettings = ConventionSettings()
    gate: GateSettings = GateSettings()

    @field_validator("measures", "segments", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("systems")
    @classmethod
    def _file_names(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if not re.fullmatch(r"[\w][\w.+ -]*", name):
                raise ValueError(f"system name {name!r}: letters, digits, blanks and . _ + - make a name")
        return value

    def parsed_measures(self) -> list[Measure]:
        """The measures to report, with the primary one and those of the gate, each once."""
        names = [*self.measures, *([self.primary] if self.primary else []), *self.gate.measures]
        return list(dict.fromkeys(parse_measure(m, max_grade=self.max_grade) for m in names))

    def parsed_conventions(self) -> Conventions:
        """The conventions as `evaluate` takes them."""
        return Conventions(**self.conventions.model_dump())

    def paths(self) -> dict[str, str]:
        """Every file the settings name, by the setting that names it."""
        named = {"queries": self.queries, "documents": self.documents, "qrels": self.qrels}
        named |= {f"systems.{n}": (m["file"] if (m := CODE.match(s)) else s) for n, s in self.systems.items()}
        if self.gate.baseline and self.gate.baseline.endswith(".json"):
            named["gate.baseline"] = self.gate.baseline
        return {k: v for k, v in named.items() if v is not None}

    def moved(self, old: Path, new: Path) -> Settings:
        """The same settings for a file in another folder: paths relative to ``new`` instead of ``old``."""

        def move(path: str | None) -> str | None:
            return None if path is None else Path(os.path.relpath(old / path, new)).as_posix()

        def system(spec: str) -> str:
            code = CODE.match(spec)
            return f"{move(code['file'])}:{code['factory']}" if code else str(move(spec))

        data = self.model_dump()
        data |= {key: move(data[key]) for key in ("queries", "documents", "qrels")}
        data["systems"] = {name: system(spec) for name, spec in self.systems.items()}
        if "gate.baseline" in self.paths():
            data["gate"]["baseline"] = move(self.gate.baseline)
        return Settings.model_validate(data)


def resolve(
    file: Mapping[str, Any],
    overrides: Mapping[str, Any],
    *,
    source: Path_ = "suite.yaml",
    lines: Mapping[str, int] | None = None,
) -> Settings:
    """Settings from what a file says and what is set on top of it.

    Parameters
    ----------
    file, overrides : mapping
        Nested settings. Mappings merge key by key, except ``systems`` and ``where``, which an override replaces.
    source : path
        Named in errors about the file's settings.
    lines : mapping from dotted key to line, optional
        From :func:`read_settings`.

    Raises
    ------
    InputError
        For an unknown setting (the nearest is suggested) or a value of the wrong kind.

    Examples
    --------
    >>> resolve({"depth": 5}, {"gate": {"max_drop": 0.01}}).gate.max_drop
    0.01
    """
    for layer, name in ((file, source), (overrides, "overrides")):
        where = (lines or {}) if layer is file else {}
        _validated(layer, name, where)
    merged = dict(file)
    for key, value in overrides.items():
        nested = isinstance(value, Mapping) and key not in ("systems", "where")
        merged[key] = {**merged.get(key, {}), **value} if nested else value
    settings = _validated(merged, source, lines or {})
    for key in ("measures", "primary", "gate.measures"):
        value = settings.gate.measures if key == "gate.measures" else getattr(settings, key)
        for text in [value] if isinstance(value, str) else value or []:
            try:
                parse_measure(text, max_grade=settings.max_grade)
            except InputError as error:
                in_file = key.split(".")[0] not in overrides
                place = source if in_file else "overrides"
                raise InputError(
                    place, (lines or {}).get(key) if in_file else None, error.found, error.expected
                ) from None
    return settings


def read_settings(path: Path_) -> tuple[dict[str, Any], dict[str, int]]:
    """A YAML file's settings as they are written, and the line of each (dotted) key.

    Raises
    ------
    InputError
        If the file is missing, is not YAML, or holds no mapping.
    """
    with reading(path, "settings in YAML") as file:
        text = file.read()
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise InputError(path, line, f"broken YAML ({error.problem})", "settings as `key: value`") from None
    if data is None:
        return {}, {}
    if not isinstance(node, yaml.MappingNode):
        raise InputError(path, 1, "no mapping", "settings as `key: value`")
    lines: dict[str, int] = {}
    _lines(node, "", lines, path)
    return data, lines


def parse_set(items: list[str]) -> dict[str, Any]:
    """``--set key=value`` flags as nested settings; the value is read as YAML, dots reach inside.

    >>> parse_set(["gate.max_drop=0.01", "measures=[nDCG@10, RR]"])
    {'gate': {'max_drop': 0.01}, 'measures': ['nDCG@10', 'RR']}
    """
    settings: dict[str, Any] = {}
    for item in items:
        key, equals, text = item.partition("=")
        if not equals or not key.strip():
            raise InputError(f"--set {item}", None, "no `=`", "key=value, for example depth=20")
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError:
            raise InputError(f"--set {item}", None, f"broken YAML {text!r}", "a value as in suite.yaml") from None
        *outer, last = key.strip().split(".")
        place = settings
        for part in outer:
            place = place.setdefault(part, {})
            if not isinstance(place, dict):
                raise InputError(f"--set {item}", None, f"{part!r} set to a value before", "one of the two")
        place[last] = value
    return settings


def _validated(data: Mapping[str, Any], source: Path_, lines: Mapping[str, int]) -> Settings:
    try:
        return Settings.model_validate(dict(data))
    except ValidationError as errors:
        error = errors.errors()[0]
    path = [str(part) for part in error["loc"]]
    if error["type"] == "extra_forbidden":
        key = ".".join(path)
        raise InputError(
            source, lines.get(key), f"unknown setting {key!r}", nearest(path[-1], _fields(path[:-1]))
        ) from None
    while len(path) > 1 and ".".join(path) not in lines:
        path.pop()  # an item of a list stands on the line of its list
    key = ".".join(str(part) for part in error["loc"])
    message = str(error["msg"]).removeprefix("Value error, ").removeprefix("Input should be ")
    raise InputError(source, lines.get(".".join(path)), f"{key}: {error.get('input')!r}", message) from None


def _fields(outer: list[str]) -> list[str]:
    model: type[BaseModel] = Settings
    for part in outer:
        annotation = model.model_fields[part].annotation
        options = [annotation, *get_args(annotation)]
        model = next(o for o in options if isinstance(o, type) and issubclass(o, BaseModel))
    return list(model.model_fields)


def _lines(node: yaml.MappingNode, prefix: str, lines: dict[str, int], path: Path_) -> None:
    for key, value in node.value:
        name = prefix + str(key.value)
        if name in lines:
            raise InputError(path, key.start_mark.line + 1, f"setting {name!r} twice", "each setting once")
        lines[name] = key.start_mark.line + 1
        if isinstance(value, yaml.MappingNode):
            _lines(value, name + ".", lines, path)
