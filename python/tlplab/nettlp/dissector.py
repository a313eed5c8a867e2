"""`tlplab dissector`: the files that Wireshark needs to read the captures."""

from __future__ import annotations

from pathlib import Path

import click

from tlplab import _core
from tlplab.outputs import write_text


@click.command("dissector", short_help="Write the Wireshark dissector for NetTLP and tlplab.")
@click.option("-o", "folder", metavar="DIR", required=True, help="Write the files to DIR, which is created if missing.")
def dissector_command(folder: str) -> None:
    """Write the Wireshark dissector for NetTLP and for the captures of simulated links.

    Its files, tlplab.lua and the parts that it loads, go into one folder below Wireshark's plugins, from which Wireshark
    and tshark 4.0 and later load them. `tshark -G folders` shows the folder of personal plugins.

    \b
    Examples:
      tlplab dissector -o ~/.local/lib/wireshark/plugins/tlplab
      tshark -X lua_script:out/dissector/tlplab.lua -r capture.pcap
    """
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise click.UsageError(f"-o {folder} is a file; name a folder")
    place.mkdir(parents=True, exist_ok=True)
    for name, text in _core.dissector():
        write_text(str(place / name), text)
        click.echo(f"wrote {place / name}")
