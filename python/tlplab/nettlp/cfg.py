"""`tlplab cfg`: the configuration space of the function that an adapter is, and the adapter's own registers."""

from __future__ import annotations

import json
from typing import Any

import click

from tlplab import _core
from tlplab.nettlp.end import End, address_options, check_remote, number_of
from tlplab.outputs import check_outputs, write_text

SPACE = 4096
DWORD = 4
# Of the adapter itself, by number.
REGISTERS = {
    0x00: "magic number",
    0x01: "destination MAC address, low",
    0x02: "destination MAC address, high",
    0x03: "source MAC address, low",
    0x04: "source MAC address, high",
    0x05: "destination IP address",
    0x06: "source IP address",
    0x07: "destination port, unused",
    0x08: "source port, unused",
    0x10: "requester ID",
}

REGISTER = click.option("-a", "--address", "register", metavar="REGISTER", required=True, callback=number_of, help="The register's first byte, as in 0x10.")  # fmt: skip


@click.group("cfg", short_help="Access the configuration space of a NetTLP device.")
def cfg_group() -> None:
    """Read and write the configuration space of an adapter's function.

    \b
    Examples:
      tlplab cfg read -a 0 -s 64
      tlplab cfg write -a 4 --data 0x6 --size 2
      tlplab cfg registers
    """


def end(local: str, adapter: str, allow_remote: bool) -> End:
    """The end that asks an adapter for its configuration."""
    check_remote(local, adapter, allowed=allow_remote)
    return End(local=local, adapter=adapter)


@cfg_group.command("read")
@REGISTER
@click.option("-s", "--size", metavar="BYTES", type=click.IntRange(1, SPACE), default=DWORD, show_default=True, help="Number of bytes.")  # fmt: skip
@click.option("--json", "json_file", metavar="FILE|-", help="Write registers and values; - is the standard output.")
@address_options
def cfg_read(register: int, size: int, json_file: str | None, local: str, adapter: str, allow_remote: bool) -> None:
    """Read registers.

    \b
    Examples:
      tlplab cfg read -a 0
      tlplab cfg read -a 0x10 -s 24
    """
    if register + size > SPACE:
        raise click.UsageError(
            f"--address {register:#x} --size {size}: the range exceeds the configuration space of 4096 bytes"
        )
    check_outputs({"--json": json_file}, to_stdout={"--json"}, inputs={})
    where = end(local, adapter, allow_remote)
    first = register - register % DWORD
    values = {at: _core.config_read(where, at) for at in range(first, register + size, DWORD)}
    if json_file is not None:
        rows: list[dict[str, Any]] = [{"register": at, "value": value} for at, value in values.items()]
        write_text(json_file, json.dumps(rows, indent=1) + "\n")
    if json_file != "-":
        for at, value in values.items():
            click.echo(f"{at:03x}: {value:08x}")


@cfg_group.command("write", short_help="Write a register and show its new value.")
@REGISTER
@click.option("-d", "--data", metavar="VALUE", required=True, callback=number_of, help="The value to write.")
@click.option("-s", "--size", metavar="BYTES", type=click.IntRange(1, DWORD), default=DWORD, show_default=True, help="Number of its bytes to write, lowest first.")  # fmt: skip
@address_options
def cfg_write(register: int, data: int, size: int, local: str, adapter: str, allow_remote: bool) -> None:
    """Write a register, or a part of it, and show its new value: read-only bits keep their value.

    \b
    Examples:
      tlplab cfg write -a 4 --data 0x6 --size 2
    """
    offset = register % DWORD
    if register + size > SPACE or offset + size > DWORD:
        raise click.UsageError(
            f"--address {register:#x} --size {size}: a write must be within one doubleword below 0x1000"
        )
    if data >> 8 * size:
        raise click.UsageError(f"--data {data:#x} has more than {size} bytes; see --size")
    where = end(local, adapter, allow_remote)
    enables = ((1 << size) - 1) << offset
    _core.config_write(where, register - offset, enables, data << 8 * offset)
    click.echo(f"{register - offset:03x}: {_core.config_read(where, register - offset):08x}")


@cfg_group.command("registers", short_help="Read the adapter's own registers.")
@address_options
def cfg_registers(local: str, adapter: str, allow_remote: bool) -> None:
    """Read the adapter's own registers: its ID, its addresses and those of its datagrams.

    \b
    Example:
      tlplab cfg registers
    """
    for number, value in _core.adapter_registers(end(local, adapter, allow_remote)):
        click.echo(f"{number:02x}: {value:08x}  {REGISTERS[number]}")
