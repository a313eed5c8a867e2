"""`tlplab introspect`: processes, code and page tables of a Linux machine, from its physical memory."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from tlplab import quantities
from tlplab.errors import FAILED, RunError
from tlplab.introspect import btf
from tlplab.introspect.code import PAGE, Dump, address_space, described_code, dump_code
from tlplab.introspect.kernel import Kernel
from tlplab.introspect.options import Target, target_options
from tlplab.introspect.pages import Mapping, Space, Way, follow, mapped
from tlplab.introspect.paging import Paging
from tlplab.introspect.processes import Process, Walk, described, list_processes
from tlplab.introspect.source import Source, Unreadable
from tlplab.introspect.structures import as_profile, layout_from_btf
from tlplab.nettlp.end import number_of
from tlplab.outputs import check_outputs, write_bytes, write_text
from tlplab.sheet import Column, Sheet
from tlplab.summary import console_for

# Bytes that `pages --address` shows.
SHOWN_BYTES = 64
# Holes in a dump that are told on the terminal; --json has all.
HOLES_SHOWN = 8


@click.group("introspect", short_help="Read a Linux machine's memory by DMA.")
def introspect_group() -> None:
    """Read processes, code and page tables of a Linux machine from its physical memory.

    The memory is an image (--image), or is read by DMA through a NetTLP adapter (--adapter). Read only your own machines,
    or machines whose owners agreed: memory holds keys, passwords and the work of others.

    \b
    Examples:
      tlplab introspect processes --image memory.elf --btf vmlinux.btf -s System.map
      tlplab introspect processes -r 192.168.10.1 -l 192.168.10.3 --allow-remote --profile host.toml -s System.map
      tlplab introspect code --image memory.elf --btf vmlinux.btf -s System.map -p 20286 -o code.dump
    """


@introspect_group.command("processes", short_help="List the processes of the machine.")
@target_options
@click.option("--json", "json_file", metavar="FILE|-", help="Write the processes; - is the standard output.")
def processes(target: Target, json_file: str | None) -> int:
    """List the processes by walking the kernel's list of tasks.

    If the list is broken, the reachable processes are shown and the exit status is 1.

    \b
    Examples:
      tlplab introspect processes --image memory.elf --btf vmlinux.btf -s System.map
      tlplab introspect processes --image low.raw --image high.raw@0x100000000 --profile host.toml -s System.map
    """
    check_outputs({"--json": json_file}, to_stdout={"--json"}, inputs=target.inputs())
    with target.kernel() as kernel:
        walk = list_processes(kernel)
    write_json(json_file, lambda: process_document(kernel, walk))
    if json_file != "-":
        show_processes(walk.processes)
    for note in walk.notes:
        click.echo(f"Note: {note}", err=True)
    return complain(walk.problems)


def show_processes(found: list[Process]) -> None:
    """Prints the processes as the published tool does; threads of the kernel in brackets, as `ps` has them."""
    click.echo(f"{'PhyAddr':<16} {'PID':>7} STAT COMMAND")
    for process in found:
        name = f"[{process.shown}]" if process.kernel_thread and process.pid else process.shown
        click.echo(f"0x{process.physical:014x} {process.pid:>7} {process.letter:<4} {name}")


def process_document(kernel: Kernel, walk: Walk) -> dict[str, Any]:
    """The processes as JSON; parents by process id where the parent was found."""
    pids = {process.virtual: process.pid for process in walk.processes}
    return {
        "schema": "tlplab/processes/1",
        "kernel": {
            "init_task": hex(kernel.init_task),
            "init_task_physical": hex(kernel.init_task_physical),
            "kaslr_offset": hex(kernel.moved),
            "direct_map": hex(kernel.direct_map),
        },
        "processes": [
            {
                "pid": process.pid,
                "ppid": pids.get(process.parent),
                "name": process.shown,
                "state": process.letter,
                "kernel_thread": process.kernel_thread,
                "task": hex(process.virtual),
                "physical": hex(process.physical),
            }
            for process in walk.processes
        ],
        "problems": walk.problems,
        "notes": walk.notes,
    }


def write_json(json_file: str | None, document: Callable[[], dict[str, Any]]) -> None:
    """Writes a document, which is made only if it is wanted."""
    if json_file is not None:
        write_text(json_file, json.dumps(document(), indent=1) + "\n")


def complain(problems: list[str]) -> int:
    """Prints the errors; the exit status."""
    for problem in problems:
        click.echo(click.style("Warning: ", fg="yellow", bold=True) + problem, err=True)
    return FAILED if problems else 0


def find_process(kernel: Kernel, pid: int) -> Process:
    """The process of this id. Raises `RunError` if there is none."""
    walk = list_processes(kernel)
    process = next((process for process in walk.processes if process.pid == pid), None)
    if process is None:
        complain(walk.problems)
        raise RunError(f"there is no process {pid}; tlplab introspect processes lists all {len(walk.processes)}")
    return process


@introspect_group.command("code")
@target_options
@click.option("-p", "--pid", type=click.IntRange(1), required=True, metavar="PID", help="The process.")
@click.option("-o", "output", metavar="FILE", required=True, help="Write the code to FILE.")
@click.option("--with-header", is_flag=True, help="Include the program's ELF header, which is before its code.")
@click.option("--json", "json_file", metavar="FILE|-", help="Write the findings; - is the standard output.")
def code(target: Target, pid: int, output: str, with_header: bool, json_file: str | None) -> None:
    """Write the text of a process to a file.

    Finds each page through the process's page tables. Pages that are not in memory, because they were never accessed or
    are swapped out, are zero in the file and listed.

    \b
    Example:
      tlplab introspect code --image memory.elf --btf vmlinux.btf -s System.map -p 20286 -o code.dump
    """
    check_outputs({"-o": output, "--json": json_file}, to_stdout={"--json"}, inputs=target.inputs())
    with target.kernel() as kernel:
        process = find_process(kernel, pid)
        dump = dump_code(kernel, target.paging(process.mm), process, with_header=with_header)
    if dump.absent == len(dump.data):
        raise RunError(f"{described(process)}: none of its code from {dump.first:#x} to {dump.end:#x} is in memory")
    write_bytes(output, dump.data)
    write_json(json_file, lambda: code_document(process, dump))
    if json_file != "-":
        show_code(output, process, dump)


def code_document(process: Process, dump: Dump) -> dict[str, Any]:
    """The dump as JSON."""
    return {
        "schema": "tlplab/code/1",
        "pid": process.pid,
        "name": process.shown,
        "first": hex(dump.first),
        "end": hex(dump.end),
        "physical": None if dump.physical is None else hex(dump.physical),
        "bytes": len(dump.data),
        "missing": [{"first": hex(start), "end": hex(stop), "why": why} for start, stop, why in dump.missing],
        "file": described_code(dump),
    }


def show_code(output: str, process: Process, dump: Dump) -> None:
    """Prints the extent of the dump, and its missing parts."""
    place = "" if dump.physical is None else f", from {dump.physical:#x} on in physical memory"
    click.echo(f"code area of {described(process)}: {dump.first:#x}-{dump.end:#x}{place}")
    click.echo(f"{output}: {quantities.size(len(dump.data))}, {described_code(dump)}")
    for start, stop, why in dump.missing[:HOLES_SHOWN]:
        click.echo(f"missing: {start:#x}-{stop:#x}, {why}; zero in the file")
    if len(dump.missing) > HOLES_SHOWN:
        more = len(dump.missing) - HOLES_SHOWN
        click.echo(f"… and {more} more holes: {quantities.size(dump.absent)} are missing in all")


@introspect_group.command("pages", short_help="Walk the page tables of a process.")
@target_options
@click.option("-p", "--pid", type=click.IntRange(1), metavar="PID", help="The process.")
@click.option(
    "--root",
    callback=number_of,
    metavar="ADDRESS",
    help="Physical address of the uppermost table (CR3), instead of --pid.",
)
@click.option(
    "-a",
    "--address",
    "virtual",
    callback=number_of,
    metavar="ADDRESS",
    help="Show the translation of this virtual address; by default all mappings.",
)
@click.option("--json", "json_file", metavar="FILE|-", help="Write the findings; - is the standard output.")
def pages(target: Target, pid: int | None, root: int | None, virtual: int | None, json_file: str | None) -> int:
    """Walk the page tables of a process, for one address or for all user mappings.

    \b
    Examples:
      tlplab introspect pages --image memory.elf --btf vmlinux.btf -s System.map -p 20286
      tlplab introspect pages --image memory.elf --btf vmlinux.btf -s System.map -p 20286 -a 0x7ffe1000
      tlplab introspect pages --image memory.elf --root 0x2a10000 -a 0xffffffff81000000
    """
    check_outputs({"--json": json_file}, to_stdout={"--json"}, inputs=target.inputs())
    if (pid is None) == (root is None):
        raise click.UsageError("give the process (-p PID) or the root of its page tables (--root ADDRESS)")
    with page_tables(target, pid, root) as tables:
        if virtual is None:
            space = mapped(tables.memory, tables.paging, tables.root, 0, tables.paging.user_end)
        else:
            way, data = look_up(tables, virtual)
    if virtual is None:
        write_json(json_file, lambda: space_document(tables.root, space))
        if json_file != "-":
            show_space(tables.title, space)
        return complain(space.problems)
    write_json(json_file, lambda: way_document(tables.root, virtual, way, data))
    if json_file != "-":
        show_way(tables.title, virtual, way, data)
    return 0 if way.physical is not None else FAILED


@dataclass(frozen=True)
class Tables:
    """Page tables that are looked at."""

    memory: Source
    paging: Paging
    root: int
    title: str


@contextmanager
def page_tables(target: Target, pid: int | None, root: int | None) -> Iterator[Tables]:
    """The page tables of a process, or those at a physical address."""
    if root is not None:
        with target.memory() as memory:
            paging, root = target.paging(None), root & -PAGE
            yield Tables(memory, paging, root, f"page tables, {paging.levels} levels from {root:#x}")
        return
    assert pid is not None
    with target.kernel() as kernel:
        process = find_process(kernel, pid)
        paging, root = target.paging(process.mm), address_space(kernel, process).root
        title = f"page tables of {described(process)}, {paging.levels} levels from {root:#x}"
        yield Tables(kernel.source, paging, root, title)


def look_up(tables: Tables, virtual: int) -> tuple[Way, bytes | None]:
    """The way of an address, and the first bytes of its target, if they can be read."""
    if not tables.paging.canonical(virtual):
        levels = tables.paging.levels
        raise click.UsageError(f"--address {virtual:#x}: with {levels} levels no address has these upper bits")
    way = follow(tables.memory, tables.paging, tables.root, virtual)
    if way.physical is None:
        return way, None
    (answer,) = tables.memory.read_many([(way.physical, min(SHOWN_BYTES, PAGE - way.physical % PAGE))])
    if isinstance(answer, Unreadable):
        complain([str(answer)])
        return way, None
    return way, answer


def space_document(root: int, space: Space) -> dict[str, Any]:
    """The mappings as JSON."""
    return {
        "schema": "tlplab/pages/1",
        "root": hex(root),
        "tables": space.tables,
        "mappings": [
            {
                "first": hex(mapping.virtual),
                "end": hex(mapping.end),
                "page": mapping.page,
                "rights": str(mapping.rights),
                "frames": None if mapping.frames is None else [hex(frame) for frame in mapping.frames],
                "note": mapping.notes,
            }
            for mapping in space.mappings
        ],
        "problems": space.problems,
    }


def show_space(title: str, space: Space) -> None:
    """Prints the mappings."""
    columns = [Column("virtual", name=True), Column("page"), Column("pages"), Column("rights"), Column("physical")]
    sheet = Sheet(title, columns)
    for mapping in space.mappings:
        sheet.add(
            f"{mapping.virtual:012x}-{mapping.end:012x}",
            quantities.size(mapping.page),
            quantities.count(mapping.size // mapping.page),
            "–" if mapping.frames is None else str(mapping.rights),
            where(mapping),
        )
    console = console_for(sys.stdout)
    sheet.print(console)
    here = sum(mapping.size for mapping in space.mappings if mapping.frames is not None)
    console.print(Text(f"{quantities.size(here)} in memory, found by reading {space.tables} tables", style="dim"))


def where(mapping: Mapping) -> str:
    """The place of the pages: in one piece, or scattered from the first on."""
    if mapping.frames is None:
        return mapping.notes
    together = all(frame == mapping.frames[0] + n * mapping.page for n, frame in enumerate(mapping.frames))
    return f"{mapping.frames[0]:#x}" + ("" if together else " …")


def way_document(root: int, address: int, way: Way, data: bytes | None) -> dict[str, Any]:
    """The way of an address, as JSON."""
    return {
        "schema": "tlplab/page-walk/1",
        "root": hex(root),
        "address": hex(address),
        "steps": [
            {
                "table": s.table,
                "index": s.index,
                "at": hex(s.at),
                "entry": hex(s.entry.value),
                "kind": s.entry.kind,
                "flags": s.entry.notes,
            }
            for s in way.steps
        ],
        "physical": None if way.physical is None else hex(way.physical),
        "page": way.size,
        "rights": str(way.rights) if way.physical is not None else None,
        "problem": way.problem,
        "bytes": None if data is None else data.hex(),
    }


def show_way(title: str, address: int, way: Way, data: bytes | None) -> None:
    """Prints the way of an address, level by level."""
    columns = [
        Column("table", name=True),
        Column("index"),
        Column("entry at"),
        Column("entry"),
        Column("flags", name=True),
    ]
    sheet = Sheet(title, columns)
    for step in way.steps:
        sheet.add(step.table, str(step.index), f"{step.at:#x}", f"{step.entry.value:#018x}", step.entry.notes)
    console = console_for(sys.stdout)
    sheet.print(console)
    if way.physical is None:
        console.print(Text(f"{address:#x} has no physical address: {way.problem}"))
        return
    size = quantities.size(way.size)
    console.print(Text(f"{address:#x} is {way.physical:#x} in physical memory, in a page of {size}, {way.rights}"))
    if data is not None:
        show_bytes(console, data)


def show_bytes(console: Console, data: bytes) -> None:
    """Prints bytes as hexadecimal and as text."""
    for start in range(0, len(data), 16):
        line = data[start : start + 16]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in line)
        console.print(Text(f"+{start:02x}  {line.hex(' '):47}  {text}"), soft_wrap=True)


@introspect_group.command("layout", short_help="Write the kernel's offsets as a profile.")
@click.option(
    "--btf",
    "btf_file",
    metavar="FILE",
    required=True,
    help="The kernel's types: its /sys/kernel/btf/vmlinux, or a vmlinux.",
)
@click.option("-o", "output", metavar="FILE.toml", default="-", help="Write to FILE instead of the standard output.")
def layout(btf_file: str, output: str) -> None:
    """Write the offsets that the other commands need as a profile, from BTF.

    \b
    Example:
      tlplab introspect layout --btf /sys/kernel/btf/vmlinux -o host.toml
    """
    check_outputs({"-o": output}, to_stdout={"-o"}, inputs={"--btf": btf_file})
    write_text(output, as_profile(layout_from_btf(btf.read_btf(btf_file), btf_file), btf_file))
