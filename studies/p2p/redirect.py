"""Access control that sends peers by way of the root complex, on a server with partitioned switches of another maker: predicted from flat.toml's GPUs and links."""

from __future__ import annotations

from studies.p2p import published as p
from studies.p2p.flat import EXPERIMENT
from studies.p2p.rows import PREDICTED, judged, run, total
from tlplab.reproduce import Outcomes, Row, Run
from tlplab.reproduce.section import Section

# Two partitions of one chip, as GPU 0 and GPU 2 of that server are.
ONE_CHIP = ("switch.sw1.chip=one", "switch.sw2.chip=one")
REDIRECT = ("host.acs=isolation", "switch.sw1.acs=isolation", "switch.sw2.acs=isolation")
# The published name of each, its pair here, and what is set.
CASES = {
    "in one partition, redirected": ((0, 1), (*ONE_CHIP, *REDIRECT)),
    "in one partition, straight": ((0, 1), ONE_CHIP),
    "in two partitions of a chip, redirected": ((0, 4), (*ONE_CHIP, *REDIRECT)),
    "in two partitions of a chip, straight": ((0, 4), ONE_CHIP),
}


def runs() -> list[Run]:
    """Both ways at once."""
    return [
        run(f"redirect {name}", EXPERIMENT, [(a, b), (b, a)], *overrides, kind="both")
        for name, ((a, b), overrides) in CASES.items()
    ]


def rows(outcomes: Outcomes) -> list[Row]:
    """All predicted."""
    return [
        judged(f"{p.SERVER}: a pair both ways {name}", value, total(outcomes, f"redirect {name}"), "GB/s", PREDICTED, "predicted from the machine with two switches")
        for name, value in p.SERVER_BOTH.items()
    ]  # fmt: skip


def text(outcomes: Outcomes) -> str:
    """The cost of redirection, and the patterns without one, as the text of the page."""
    first, *_ = CASES
    return TEXT.format(up=f"{total(outcomes, f'redirect {first}'):.1f}")


TEXT = """## Request redirect

On a server with two PEX890xx chips of two partitions each, two GPUs of one partition exchanged 50 GB/s while access control redirected requests, and 103 without. All of it then goes up the partition's uplink and comes down again, so that both
directions share it: {up} GB/s here. Between two partitions of a chip it was 103 either way: access control does not apply inside a chip."""

SECTION = Section(rows=rows, text=text, runs=runs)
