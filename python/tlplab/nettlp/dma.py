"""`tlplab dma`: the memory of an adapter's host, read and written."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from tlplab import _core
from tlplab.nettlp.aside import Aside
from tlplab.nettlp.end import (
    end_of,
    end_options,
    number_of,
    size_of,
    tags_of,
    writing_end_options,
)
from tlplab.nettlp.writing import Flush, Writer
from tlplab.outputs import check_outputs, whole_file
from tlplab.progress import Bar

# One call of the core, which is in memory twice.
CHUNK = 1 << 20
ROW = 16

ADDRESS = click.option(
    "-a", "--address", metavar="ADDRESS", required=True, callback=number_of, help="First byte, as in 0xa0000000."
)
TAG = click.option("-t", "--tag", "tags", metavar="TAG[-TAG]", default="0-15", show_default=True, callback=tags_of, help="Tags of the requests.")  # fmt: skip


@click.group("dma")
def dma_group() -> None:
    """Read and write the memory of an adapter's host by DMA.

    \b
    Examples:
      tlplab dma read -a 0x1000 -s 64B
      tlplab dma write -a 0x1000 --text 'hello'
    """


@dma_group.command("read")
@ADDRESS
@click.option(
    "-s", "--size", metavar="SIZE", default="256B", show_default=True, callback=size_of, help="Number of bytes."
)
@click.option("-o", "output", metavar="FILE|-", help="Write the bytes to FILE instead of a table to the terminal.")
@TAG
@end_options
def dma_read(address: int, size: int, output: str | None, tags: tuple[int, int], **given: Any) -> None:
    """Read memory and show it, or write it to a file.

    \b
    Examples:
      tlplab dma read -a 0x1000 -s 64B
      tlplab dma read -a 0 -s 1MiB -o memory.bin --tag 0-63
    """
    if size == 0:
        raise click.UsageError("--size 0: read at least one byte, or use tlplab dma flush for a read of no bytes")
    if address + size > 1 << 64:
        raise click.UsageError("--size: the range exceeds the address space")
    check_outputs({"-o": output}, to_stdout={"-o"}, inputs={})
    dma = _core.Dma(end_of(given, tags))
    digits = max(8, len(f"{address + size - 1:x}"))
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(whole_file(output)) if output not in (None, "-") else None
        bar = stack.enter_context(Bar(quiet=output is None))
        for start, end in chunks(address, size):
            data = Aside(dma.read, start, end - start).result()
            if file is not None:
                file.write(data)
            elif output == "-":
                sys.stdout.buffer.write(data)
            else:
                sys.stdout.writelines(f"{row}\n" for row in rows(start, data, digits))
            bar.show((end - address) / size, f"{(end - address) >> 20} MiB")
    sys.stdout.flush()


@dma_group.command("write")
@ADDRESS
@click.option("-p", "--text", metavar="TEXT", help="Write this text.")
@click.option("--hex", "digits", metavar="DIGITS", help="Write these bytes, as in 'de ad be ef'.")
@click.option("-i", "--input", "source", metavar="FILE|-", help="Write the contents of FILE.")
@click.option(
    "--no-flush",
    is_flag=True,
    help="Do not wait until the data are in memory, and do not check that the adapter answers.",
)
@click.option(
    "--flush",
    type=click.Choice(["zero", "read"]),
    default="zero",
    show_default=True,
    help="Wait with a read of no bytes, or with a read of the last doubleword written. The latter is for peers that do not answer reads of no bytes, such as the published psmem, and for memory where reads have no side effects.",
)
@click.option(
    "--verify",
    is_flag=True,
    help="Read the data back and compare: a write that the network loses is not detected otherwise. --retry does so too, and writes missing data again.",
)
@TAG
@writing_end_options
def dma_write(
    address: int, text: str | None, digits: str | None, source: str | None, no_flush: bool, flush: Flush, verify: bool,
    tags: tuple[int, int], **given: Any
) -> None:  # fmt: skip
    """Write to memory, and wait until the data are there. Writes are posted, so a write that the network loses is detected only
    with --verify (reads back), --retry (reads back and writes again) or --acknowledge (tlplab's adapter confirms it).

    \b
    Examples:
      tlplab dma write -a 0x1000 --text 'hello'
      tlplab dma write -a 0x1000 --hex 'de ad be ef'
      tlplab dma write -a 0 -i memory.bin --verify
    """
    data = what_to_write(text, digits, source)
    if not data:
        raise click.UsageError("there are no bytes to write; give at least one")
    if address + len(data) > 1 << 64:
        raise click.UsageError("the range exceeds the address space")
    tries = given["retry"]
    how: Flush = "never" if no_flush else flush
    writer = Writer(_core.Dma(end_of(given, tags)), flush=how, verify=verify or tries > 0, tries=tries)
    with Bar(quiet=False) as bar:
        for start, end in chunks(address, len(data)):
            writer.write(start, data[start - address : end - address])
            bar.show((end - address) / len(data), f"{(end - address) >> 20} MiB")
    writer.finish()


@dma_group.command("flush", short_help="Wait until all earlier writes are in memory.")
@click.option("-a", "--address", metavar="ADDRESS", default="0", show_default=True, callback=number_of, help="An address in the memory written.")  # fmt: skip
@TAG
@end_options
def dma_flush(address: int, tags: tuple[int, int], **given: Any) -> None:
    """Wait with a read of no bytes until all earlier writes are in memory.

    \b
    Example:
      tlplab dma flush -a 0x1000
    """
    Aside(_core.Dma(end_of(given, tags)).flush, address).result()


def chunks(address: int, size: int) -> Iterator[tuple[int, int]]:
    """The address and size of each part of a region, cut at multiples of the part's size, so that no row of a table is cut."""
    end = address + size
    while address < end:
        cut = min(address - address % CHUNK + CHUNK, end)
        yield address, cut
        address = cut


def what_to_write(text: str | None, digits: str | None, source: str | None) -> bytes:
    """The bytes of exactly one of the options."""
    if sum(given is not None for given in (text, digits, source)) != 1:
        raise click.UsageError("the data are missing: give one of --text, --hex and --input")
    if text is not None:
        return text.encode()
    if digits is not None:
        try:
            return bytes.fromhex(digits)
        except ValueError:
            raise click.UsageError(
                f"--hex {digits!r}: write pairs of hexadecimal digits, as in 'de ad be ef'"
            ) from None
    assert source is not None
    try:
        return sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as error:
        raise click.UsageError(f"--input {source}: {error.strerror}") from None


def rows(address: int, data: bytes, digits: int) -> list[str]:
    """Bytes with their addresses, of so many digits, as hexdump shows them; rows begin at multiples of 16."""
    lines = []
    for start in range(address - address % ROW, address + len(data), ROW):
        places = range(start, start + ROW)
        known = [data[at - address] if address <= at < address + len(data) else None for at in places]
        cells = ["  " if byte is None else f"{byte:02x}" for byte in known]
        shown = "".join(" " if b is None else chr(b) if 32 <= b < 127 else "." for b in known)
        lines.append(f"{start:0{digits}x}  {' '.join(cells[:8])}  {' '.join(cells[8:])}  |{shown}|")
    return lines
