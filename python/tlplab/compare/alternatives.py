"""`--if`: the settings of an alternative, in absolute terms or relative to the base (`device.nic.tags += 32`)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import click

from tlplab import _core

ASSIGNMENT = re.compile(r"\s*([A-Za-z][\w.*-]*?)\s*([+*/-]?)=(?!=)\s*(.*?)\s*", re.DOTALL)
QUANTITY = re.compile(r"([+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*([A-Za-zµ/]*)")
# Decimal digits that a value may get by an operation.
DIGITS = 15
UNITS = (_core.duration_fs, _core.size, _core.rate)
OPENS, CLOSES, QUOTES = "[{", "]}", "\"'"


@dataclass(frozen=True)
class Assignment:
    """A key, how it changes (`""` for to a value, or `+`, `-`, `*`, `/`), and the value."""

    key: str
    operator: str
    value: str


@dataclass(frozen=True)
class Alternative:
    """A name, and its settings."""

    name: str
    given: str
    assignments: tuple[Assignment, ...]


def read(given: str) -> Alternative:
    """Reads `gen4: device.nic.link=gen4 x8, device.nic.tags+=32`; without a name, the settings are the name. Raises `click.UsageError`."""
    name, colon, rest = given.partition(":")
    named = bool(colon) and "=" not in name
    text = rest if named else given
    assignments = tuple(assignment(part, given) for part in parts(text))
    name = " ".join((name if named else given).split())
    if not name:
        raise refused(given, "has no name before its colon; write NAME: KEY=VALUE")
    return Alternative(name, given, assignments)


def refused(given: str, why: str) -> click.UsageError:
    """A mistake in an alternative."""
    return click.UsageError(f"--if {given!r}: {why}")


def parts(text: str) -> list[str]:
    """Cuts at commas that are in no quotes and no brackets."""
    found, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in QUOTES:
            quote = letter
        elif letter in OPENS + CLOSES:
            depth += 1 if letter in OPENS else -1
        elif letter == "," and depth <= 0:
            found.append("")
            continue
        found[-1] += letter
    return found


def assignment(part: str, given: str) -> Assignment:
    """Reads `KEY=VALUE`, `KEY+=VALUE` and so on."""
    found = ASSIGNMENT.fullmatch(part)
    if found is None or not found[3]:
        said = (
            f"{part.strip()!r} sets nothing" if part.strip() else "there is nothing between two commas, or at the end"
        )
        raise refused(given, f"{said}; write KEY=VALUE, KEY+=VALUE or KEY*=VALUE, and commas within a value in quotes")
    return Assignment(found[1], found[2], found[3])


def overrides(one: Alternative, settings: Mapping[str, Any]) -> list[str]:
    """The assignments of an alternative, as `--set` takes them; `settings` are those of the base. Raises `click.UsageError`."""
    known = dict(settings)
    found = []
    for step in [key for said in one.assignments for key in expanded(said, settings, one.given)]:
        value = step.value
        if step.operator:
            value = computed(step, known, one.given)
            known[step.key] = value
        else:
            known[step.key] = value.strip(QUOTES)
        found.append(f"{step.key}={value}")
    return found


def expanded(step: Assignment, settings: Mapping[str, Any], given: str) -> list[Assignment]:
    """The assignments that a pattern of keys means: a `*` stands for a name, or a part of one."""
    if "*" not in step.key:
        return [step]
    pattern = re.compile("[^.]*".join(re.escape(part) for part in step.key.split("*")))
    keys = [key for key in settings if pattern.fullmatch(key)]
    if not keys:
        raise refused(given, f"the base has no key like {step.key}")
    return [Assignment(key, step.operator, step.value) for key in keys]


def computed(step: Assignment, known: Mapping[str, Any], given: str) -> str:
    """The value that a key gets, computed from its present one."""
    said = f"{step.key}{step.operator}={step.value}"
    if step.key not in known:
        raise refused(given, f"{said}: the base does not set {step.key}; write {step.key}=VALUE")
    has = split(known[step.key])
    if has is None:
        raise refused(
            given, f"{said}: {step.key} is {known[step.key]!r}, which is not a number; write {step.key}=VALUE"
        )  # fmt: skip
    by = split(step.value.strip(QUOTES))
    scales = step.operator in "*/"
    if by is None or (scales and by[1]) or (step.operator == "/" and not by[0]):
        raise refused(given, f"{said}: {step.value!r} is not {'a number to compute with' if scales else 'a number'}")
    number, unit = has
    if step.operator == "*":
        return written(number * by[0], unit)
    if step.operator == "/":
        return written(number / by[0], unit)
    other = by[0] if by[1] == unit else converted(by, unit)
    if other is None:
        wants = f"the unit of {known[step.key]!r}" if unit else "no unit"
        raise refused(given, f"{said}: {step.value!r} cannot be added to {known[step.key]!r}; give it {wants}")
    return written(number + other if step.operator == "+" else number - other, unit)


def split(value: object) -> tuple[Decimal, str] | None:
    """A number and its unit; nothing, if it is none."""
    if isinstance(value, bool):
        return None
    found = QUANTITY.fullmatch(str(value).strip())
    return (Decimal(found[1]), found[2]) if found else None


def converted(value: tuple[Decimal, str], unit: str) -> Decimal | None:
    """A quantity in another unit; nothing, if they measure different things."""
    if not unit or not value[1]:
        return None
    for measure in UNITS:
        try:
            return value[0] * measure(f"1{value[1]}") / measure(f"1{unit}")
        except ValueError:
            continue
    return None


def written(number: Decimal, unit: str) -> str:
    """A number with its unit, without an exponent."""
    rounded = round(number, DIGITS)
    text = f"{rounded:f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text}{unit}"


def read_all(given: Sequence[str], taken: Sequence[str]) -> list[Alternative]:
    """Reads them; their names differ from those `taken` and from each other. Raises `click.UsageError`."""
    found = [read(one) for one in given]
    names = list(taken)
    for one in found:
        if one.name in names:
            raise refused(one.given, f"{one.name} is the name of another run here; give it a name of its own")
        names.append(one.name)
    return found
