"""The pages of reference that are made from the code: python site/reference.py writes them, and a test compares them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from tlplab.cli import commands

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 100
GENERATED = "This page is generated: `make generate`."


def command_page() -> str:
    """The help of every command."""
    parts = [
        f"# Commands\n\nThe help of every command, as `--help` prints it. {GENERATED}\n\n"
        "Options that many commands share: `--quiet` leaves out summary and progress bar, `--json FILE|-` writes the result, `--set KEY=VALUE` overrides a key of the experiment.\n"
    ]
    for level, context in tree(commands, None, "tlplab", 2):
        parts.append(
            f"\n{'#' * level} {context.command_path}\n\n```text\n{context.command.get_help(context).rstrip()}\n```\n"
        )
    return "".join(parts)


def tree(
    command: click.Command, parent: click.Context | None, name: str, level: int
) -> Iterator[tuple[int, click.Context]]:
    """(level of the heading, context) of a command and those below it."""
    settings = {**command.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
    context = click.Context(command, parent, name, **settings)
    yield level, context
    if isinstance(command, click.Group):
        below = level if parent is None else level + 1
        for word in command.list_commands(context):
            found = command.get_command(context, word)
            if found is not None and not found.hidden:
                yield from tree(found, context, word, below)


def rust_page() -> str:
    """The crates, each with the first sentence of its tour."""
    rows = []
    for library in sorted(ROOT.glob("crates/*/src/lib.rs")):
        crate = library.parents[1].name
        tour = [line[3:].strip() for line in library.read_text(encoding="utf-8").splitlines() if line.startswith("//!")]
        paragraph = " ".join(tour[: tour.index("")] if "" in tour else tour)
        sentence = re.sub(r"\[(`[^`]*`)\](\([^)]*\))?", r"\1", re.split(r"(?<=\.)\s", paragraph)[0]).rstrip(":.") + "."
        rows.append(f"| [{crate}](../crates/{crate}/src/lib.rs) | {sentence} |\n".replace(r"\[", "["))
    return (
        "# Rust\n\nThe crate [tlplab](../crates/tlplab/src/lib.rs) has the simulator and the protocol layers. A switch and two devices, their throughput and the causes of their latency "
        f"([two_devices.rs](../crates/tlplab/examples/two_devices.rs)):\n\n```rust\n{rust_example('two_devices')[1]}```\n\n"
        "`flows` returns one entry per flow, which prints as a line: throughput, mean latency, and the share of each cause. The configuration is plain data with public fields, and `new` sets the default of each field; "
        "the behaviour of a component is an object for the builder.\n\n"
        "A large fabric waits for memory more than for the processor: with [mimalloc](https://docs.rs/mimalloc) as its global allocator a program that runs hundreds of devices takes a third less time.\n\n"
        "## Custom parts\n\nEach example is a program that asserts its result (`cargo run -p tlplab --example own_node`):\n\n"
        f"| example | contents |\n|---|---|\n{''.join(example_rows())}\n"
        "- Take time from the context and random numbers from `Random`: then a run with custom parts is as deterministic as any other.\n"
        "- Give a copy in `snapshot` if a run has to be copied. `Fabric::snapshot` refuses with the name of the first part without one.\n"
        "- A custom node has two ports and is invisible to software. For more ports, put a switch next to it.\n"
        "- A custom data link layer is for framed links, not for flits.\n\n"
        "## Other ways in\n\n"
        "- A device of your own: [Write a device](write-a-device.md) and [copier.rs](../examples/rust/copier.rs), by the contract in [contract.rs](../crates/device/src/contract.rs).\n"
        "- An experiment file in a program: `tlplab_experiment::Experiment::parse`, then `run::run`.\n\n"
        "## The crates\n\n`cargo doc --no-deps --open` builds the documentation of all crates, with types, units, errors and examples. The `lib.rs` of a crate is a tour that ends in the file you need; "
        "[Architecture](architecture.md) has the arrows between crates. `tlplab` needs units, wire, transaction, datalink, cfgspace, device and fabric; `make package` checks that these are complete as packages.\n\n"
        f"| crate | contents |\n|---|---|\n{''.join(rows)}\n{GENERATED}\n"
    )


def rust_example(name: str) -> tuple[str, str]:
    """The first sentence of an example of the crate tlplab, and its code."""
    first, code = (ROOT / f"crates/tlplab/examples/{name}.rs").read_text(encoding="utf-8").split("\n", 1)
    return first.removeprefix("//! "), code


def example_rows() -> Iterator[str]:
    for path in sorted(ROOT.glob("crates/tlplab/examples/own_*.rs")):
        sentence = rust_example(path.stem)[0].removesuffix(".")
        yield f"| [{path.name}](../crates/tlplab/examples/{path.name}) | {sentence} |\n"


PAGES: dict[str, Callable[[], str]] = {
    "docs/commands.md": command_page,
    "docs/rust.md": rust_page,
}


def main() -> None:
    for path, page in PAGES.items():
        (ROOT / path).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
