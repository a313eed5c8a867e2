"""The options that `tlplab introspect processes`, `code` and `pages` share: the place of the memory, and its kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from tlplab import quantities
from tlplab.analytic.options import SIZE
from tlplab.introspect import btf
from tlplab.introspect.adapter import AdapterMemory
from tlplab.introspect.kernel import Kernel, Known, find_kernel
from tlplab.introspect.paging import Paging, paging_of
from tlplab.introspect.source import Image, Source, Watched, split_address
from tlplab.introspect.structures import Layout, layout_from_btf, read_profile
from tlplab.introspect.symbols import find_symbols
from tlplab.nettlp.end import End, end_of, end_options, number_of, tags_of
from tlplab.progress import Bar

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class Target:
    """The values of the shared options."""

    images: Sequence[str]
    end: End | None
    """The adapter's end of NetTLP, if the memory is behind an adapter."""
    btf: str | None
    profile: str | None
    symbols: str | None
    init_task: int | None
    kaslr_offset: int | None
    phys_base: int | None
    direct_map: int | None
    search: float | None
    machine: str
    levels: int | None

    def inputs(self) -> dict[str, str | None]:
        """The files that are read, by their options."""
        files = {"--btf": self.btf, "--profile": self.profile, "--symbols": self.symbols}
        return files | {f"--image {image}": split_address(image)[0] for image in self.images}

    @contextmanager
    def memory(self) -> Iterator[Source]:
        """Opens the memory; on a terminal a line shows the amount that was read, if that takes long."""
        with ExitStack() as stack:
            source = stack.enter_context(closing(Image(self.images))) if self.end is None else AdapterMemory(self.end)
            bar = stack.enter_context(Bar(quiet=False))
            yield Watched(source, lambda read: bar.show(None, f"{quantities.size(read)} read"))

    def layout(self) -> Layout:
        """Reads where the fields are."""
        if self.btf is not None and self.profile is None:
            return layout_from_btf(btf.read_btf(self.btf), self.btf)
        if self.profile is not None and self.btf is None:
            return read_profile(self.profile)
        raise click.UsageError(
            "give either --btf FILE (/sys/kernel/btf/vmlinux of the target machine, or its vmlinux) or --profile FILE"
        )

    def known(self) -> Known:
        """The facts that the options give about the addresses."""
        if (self.symbols is None) == (self.init_task is None):
            raise click.UsageError(
                "give either --symbols FILE (System.map or a copy of /proc/kallsyms) or --init-task ADDRESS"
            )
        if self.symbols is not None:
            found = find_symbols(self.symbols, "init_task", "page_offset_base")
        else:
            assert self.init_task is not None
            found = {"init_task": self.init_task}
        return Known(
            found["init_task"],
            found.get("page_offset_base"),
            self.kaslr_offset,
            self.phys_base,
            self.direct_map,
            int(self.search) if self.search else None,
        )

    @contextmanager
    def kernel(self) -> Iterator[Kernel]:
        """Opens the memory, and finds the kernel in it."""
        layout, known = self.layout(), self.known()
        with self.memory() as memory:
            yield find_kernel(memory, layout, known)

    def paging(self, kernel_pointer: int | None) -> Paging:
        """The processor's page tables: five levels if a pointer of the kernel does not fit four."""
        five = kernel_pointer is not None and self.machine == "x86-64" and kernel_pointer < 0xFFFF_8000_0000_0000
        return paging_of(self.machine, self.levels or (5 if five else 4))


def target_options(command: Command) -> Command:
    """Adds the shared options; the command gets them as `target`."""

    @wraps(command)
    def with_target(*args: Any, tags: tuple[int, int], **given: Any) -> Any:
        behind = click.get_current_context().get_parameter_source("adapter") is ParameterSource.COMMANDLINE
        if bool(given["images"]) == behind:
            raise click.UsageError("give the memory to read: either --image FILE or --adapter IP")
        end = end_of(given, tags)
        own = {name: given.pop(name) for name in Target.__dataclass_fields__ if name != "end"}
        return command(*args, target=Target(end=end if behind else None, **own), **given)

    for decorate in reversed((*TARGET_OPTIONS, TAG, end_options)):
        decorate(with_target)
    return with_target  # type: ignore[return-value]


TAG = click.option(
    "-t",
    "--tag",
    "tags",
    metavar="TAG[-TAG]",
    default="0-63",
    show_default=True,
    callback=tags_of,
    help="Tags of the requests.",
)
TARGET_OPTIONS = [
    click.option("--image", "images", metavar="FILE[@ADDR]", multiple=True, help="A memory image: raw (from ADDR on), ELF core or LiME. May be given again."),
    click.option("--btf", metavar="FILE", help="The kernel's types: its /sys/kernel/btf/vmlinux, or a vmlinux."),
    click.option("--profile", metavar="FILE.toml", help="The offsets of kernel structures, instead of --btf; see introspect layout."),
    click.option("-s", "--symbols", metavar="FILE", help="The kernel's System.map, or a copy of its /proc/kallsyms."),
    click.option("--init-task", callback=number_of, metavar="ADDRESS", help="Virtual address of init_task, instead of --symbols."),
    click.option("--kaslr-offset", callback=number_of, metavar="ADDRESS", help="Offset of the kernel image in virtual memory; found by a search by default."),
    click.option("--phys-base", callback=number_of, metavar="ADDRESS", help="The kernel's phys_base; found by a search by default."),
    click.option("--direct-map", callback=number_of, metavar="ADDRESS", help="The kernel's page_offset_base; found by a search by default."),
    click.option("--search", callback=SIZE, metavar="SIZE", help="Amount of physical memory to search; by default a whole image, or 2GiB by DMA."),
    click.option("--machine", type=click.Choice(["x86-64", "aarch64"]), default="x86-64", show_default=True, help="The processor's page tables."),
    click.option("--levels", type=click.IntRange(3, 5), metavar="N", help="Levels of its page tables; by default detected for x86-64, otherwise 4."),
]  # fmt: skip
