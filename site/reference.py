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
        "# Rust\n\nThe crate [tlplab](../crates/tlplab/src/lib.rs) is the simulator and the protocol layers for Rust programs. A switch and two devices, what each of them carries, "
        f"and where its time goes ([two_devices.rs](../crates/tlplab/examples/two_devices.rs)):\n\n```rust\n{rust_example('two_devices')[1]}```\n\n"
        "`flows` gives a line for each flow: throughput, mean latency, and the share of each cause in it. The configuration is plain data whose `new` has a default for every field; what a component does is an object "
        "given to the builder. Parts of your own, each in a program that asserts what it shows (`cargo run -p tlplab --example own_node`):\n\n"
        f"| example | contents |\n|---|---|\n{''.join(example_rows())}\n"
        "A run with parts of your own is as deterministic as any other if they ask nothing but the simulation for time and random numbers. `Fabric::snapshot` asks each part for a copy and names the one that gives none. "
        "A node stands between two links and has two ports; software does not see it. What needs more ports is a switch with such nodes at its links. "
        "A data link layer of your own is for framed links, not for flits.\n\n"
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
