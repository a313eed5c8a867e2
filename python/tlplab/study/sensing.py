"""The influence of a study's parameters: one at a time around a base, or by the samples of Morris and Sobol, which SALib draws and sums up."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from tlplab import _core
from tlplab.study.space import Parameter, Point, Space, Steps, Tell, as_point

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Levels of each parameter in Morris's grid: a step goes over two of them, two thirds of the range.
LEVELS = 4
STEP = LEVELS / (2 * (LEVELS - 1))
# Fewer sum up to nothing.
LEAST_GROUPS = 2


@dataclass(frozen=True)
class End:
    """One end of a parameter's effect on a figure."""

    value: float
    label: str
    """The setting of the parameter."""


@dataclass(frozen=True)
class Effect:
    """The effect of a parameter on a figure."""

    name: str
    size: float
    """By one at a time, from the least to the greatest; by Morris, the mean over the whole range (μ*); by Sobol, the total share of the variance (ST)."""
    half: float | None
    """Half of its 95 % confidence interval, if it has one."""
    low: End | None = None
    high: End | None = None
    other: float | None = None
    """By Morris, how it differs from place to place (σ); by Sobol, the share that is due to it alone (S1)."""
    other_half: float | None = None

    @property
    def is_clear(self) -> bool:
        """True if its interval is narrower than the effect; an effect of 0 is clear."""
        return self.half is None or self.size == 0 or self.half < abs(self.size)


@dataclass(frozen=True)
class Sensed:
    """The effects of a study's parameters on a figure, the largest effect first."""

    effects: tuple[Effect, ...]
    fixed: tuple[str, ...]
    """Parameters of one step, or of which no two ran."""
    points: tuple[Point, ...]
    """The points that were needed, each once."""
    base: _core.Mean | None = None
    spread: float | None = None
    """The standard deviation of the figure over the samples."""
    groups: int = 0
    dropped: int = 0
    """Groups of samples with a point that has no figure."""

    @property
    def unclear(self) -> list[str]:
        """Parameters whose interval is wider than their effect."""
        return [one.name for one in self.effects if not one.is_clear]

    @property
    def alike(self) -> list[tuple[str, str]]:
        """Parameters next to each other that the intervals do not tell apart."""
        pairs = zip(self.effects, self.effects[1:], strict=False)
        return [
            (a.name, b.name)
            for a, b in pairs
            if a.size - (a.half or 0.0) < b.size + (b.half or 0.0) and (a.half or b.half)
        ]


def read_base(space: Space, at: Sequence[str]) -> dict[int, int]:
    """The steps that parameters stay at, from `NAME=VALUE`. Raises `click.UsageError`."""
    found: dict[int, int] = {}
    names = [one.name for one in space.parameters]
    for text in at:
        name, sign, value = text.partition("=")
        if not sign or name.strip() not in names:
            raise click.UsageError(f"--at {text}: write NAME=VALUE; the names are {'; '.join(names)}")
        number = names.index(name.strip())
        step = space.parameters[number].find(value.strip())
        if step is None:
            raise click.UsageError(
                f"--at {text}: the axis has no such value; it has {some(space.parameters[number].labels)}"
            )
        if number in found:
            raise click.UsageError(f"--at {text}: {name.strip()} is given twice")
        found[number] = step
    return found


def some(labels: Sequence[str]) -> str:
    """A few of several values."""
    return "; ".join(labels) if len(labels) <= 12 else f"{'; '.join(labels[:5])}; … {labels[-1]}"


def one_at_a_time(space: Space, figure: str, at: dict[int, int], tell: Tell) -> Sensed:
    """Varies each parameter alone; the others are as in the base. Raises `SearchInterruptedError`, `click.ClickException` if the base does not run."""
    stay = sorted(at.items())
    (base,) = along(space, figure, None, stay, lambda *_: None)
    if base.kind != "done":
        raise click.UsageError(f"the base cannot be run, {base.kind}: {base.message or 'a filter leaves it out'}")
    effects, fixed, points = [], [], [base]
    vary = [number for number, one in enumerate(space.parameters) if one.size > 1]
    for place, number in enumerate(vary):
        over = lambda done, of, place=place: tell(1000 * place + (1000 * done // of if of else 0), 1000 * len(vary))  # noqa: E731
        rest = [(other, step) for other, step in stay if other != number]
        came = along(space, figure, number, rest, over)
        points += came
        ran = [point for point in came if point.kind == "done"]
        if len(ran) > 1:
            effects.append(effect_along(space.parameters[number], ran))
        else:
            fixed.append(space.parameters[number].name)
    fixed += [one.name for one in space.parameters if one.size == 1]
    effects.sort(key=lambda one: -one.size)
    return Sensed(tuple(effects), tuple(fixed), tuple(points), base=base.means[0])


def along(space: Space, figure: str, number: int | None, stay: list[tuple[int, int]], tell: Tell) -> list[Point]:
    """The points along a parameter; a point's one step is that of the parameter."""
    done = space.run((number, stay), tell)
    found = {one["point"]: one for one in done.swept.summaries(figure)}
    size = 1 if number is None else space.parameters[number].size
    return [as_point((step,), found.get(step)) for step in range(size)]


def effect_along(parameter: Parameter, ran: Sequence[Point]) -> Effect:
    """From the least to the greatest that a parameter makes."""
    low = min(ran, key=lambda point: point.values[0])
    high = max(ran, key=lambda point: point.values[0])
    halves = [half for point in (low, high) if (half := point.means[0][1]) is not None]
    size = high.values[0] - low.values[0]
    half = math.hypot(*halves) if len(halves) == 2 and low is not high else (0.0 if halves else None)
    least, greatest = (End(point.values[0], parameter.labels[point.steps[0]]) for point in (low, high))
    return Effect(parameter.name, size, half, low=least, high=greatest)


def morris(space: Space, figure: str, samples: int, seed: int, tell: Tell) -> Sensed:
    """Elementary effects along so many trajectories, each scaled to the whole range of its parameter."""
    library()
    from SALib.analyze import morris as analysis
    from SALib.sample import morris as sampling

    vary, problem = varied(space)
    places = sampling.sample(problem, samples, num_levels=LEVELS, seed=seed)
    steps = [whole(space, [level(one, x) for one, x in zip(vary, row, strict=True)]) for row in places]
    values, points, kept = sampled(space, figure, steps, len(vary) + 1, tell)
    found = analysis.analyze(problem, places[kept], values, num_levels=LEVELS, seed=seed or None)
    effects = []
    for at, one in enumerate(vary):
        # Two levels are so many steps of this parameter, which may not be two thirds of them.
        scale = STEP * (one.size - 1) / jump(one)
        mean, half, sigma = (float(found[key][at]) * scale for key in ("mu_star", "mu_star_conf", "sigma"))
        effects.append(Effect(one.name, mean, half, other=sigma))
    return of_samples(space, effects, points, values, len(places) // (len(vary) + 1), len(vary) + 1)


def level(parameter: Parameter, x: float) -> int:
    """The step at one of Morris's levels, from 0 to 1. Two levels further it is always the same number of steps further."""
    number = round(x * (LEVELS - 1))
    upper, lower = divmod(number, LEVELS // 2)
    return lower * round((parameter.size - 1) / (LEVELS - 1)) + upper * jump(parameter)


def jump(parameter: Parameter) -> int:
    """The number of steps between two levels."""
    return parameter.size - 1 - round((parameter.size - 1) / (LEVELS - 1))


def sobol(space: Space, figure: str, samples: int, seed: int, tell: Tell) -> Sensed:
    """The shares of the figure's variance, where all steps of all parameters are as likely."""
    library()
    from SALib.analyze import sobol as analysis
    from SALib.sample import sobol as sampling

    vary, problem = varied(space)
    places = sampling.sample(problem, samples, calc_second_order=False, seed=seed)
    steps = [
        whole(space, [min(int(x * one.size), one.size - 1) for one, x in zip(vary, row, strict=True)]) for row in places
    ]
    size = len(vary) + 2
    values, points, _ = sampled(space, figure, steps, size, tell)
    if values.min() == values.max():
        effects = [Effect(one.name, 0.0, 0.0, other=0.0, other_half=0.0) for one in vary]
    else:
        found = analysis.analyze(problem, values, calc_second_order=False, seed=seed or None)
        columns = [[float(x) for x in found[key]] for key in ("ST", "ST_conf", "S1", "S1_conf")]
        effects = [
            Effect(one.name, total, half, other=first, other_half=first_half)
            for one, total, half, first, first_half in zip(vary, *columns, strict=True)
        ]
    return of_samples(space, effects, points, values, len(places) // size, size)


def of_samples(
    space: Space, effects: list[Effect], points: list[Point], values: npt.NDArray[np.float64], groups: int, size: int
) -> Sensed:
    """The effects, the largest first, and their basis."""
    fixed = tuple(one.name for one in space.parameters if one.size == 1)
    kept = len(values) // size
    effects.sort(key=lambda one: -one.size)
    return Sensed(
        tuple(effects), fixed, tuple(points), spread=float(values.std()), groups=groups, dropped=groups - kept
    )


def varied(space: Space) -> tuple[list[Parameter], dict[str, Any]]:
    """The parameters with several steps, in the form of SALib."""
    vary = [one for one in space.parameters if one.size > 1]
    return vary, {"num_vars": len(vary), "names": [one.name for one in vary], "bounds": [[0.0, 1.0]] * len(vary)}


def whole(space: Space, steps: Sequence[int]) -> Steps:
    """A point, with those parameters that have but one step."""
    given = iter(steps)
    return tuple(next(given) if one.size > 1 else 0 for one in space.parameters)


def sampled(
    space: Space, figure: str, steps: Sequence[Steps], size: int, tell: Tell
) -> tuple[npt.NDArray[np.float64], list[Point], list[int]]:
    """The figure at all samples, in groups that are whole; the points; and which samples those are. Raises `click.ClickException`."""
    import numpy as np

    points = space.points(steps, figure, tell)
    whole = [
        begin
        for begin in range(0, len(points), size)
        if all(point.kind == "done" for point in points[begin : begin + size])
    ]
    if len(whole) < LEAST_GROUPS:
        raise click.UsageError(
            f"of {len(points) // size} groups of {size} samples {len(whole) or 'none'} have a figure at each of their points:"
            " filters and refusals leave too small a part of the space; choose axes whose values can all be combined, or one-at-a-time"
        )
    kept = [number for begin in whole for number in range(begin, begin + size)]
    values = np.array([points[number].values[0] for number in kept])
    return values, list({point.steps: point for point in points}.values()), kept


def library() -> None:
    """Looks for SALib. Raises `click.UsageError` where it is not installed."""
    try:
        import SALib  # noqa: F401
    except ImportError:
        raise click.UsageError("the methods morris and sobol need SALib: pip install 'tlplab[studies]'") from None
    warnings.filterwarnings("ignore", module="SALib")
