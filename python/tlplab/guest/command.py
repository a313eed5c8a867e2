"""`tlplab guest`: an unmodified Linux with devices of ours."""

from __future__ import annotations

import click

from tlplab.guest.qemu_command import qemu
from tlplab.guest.uml_command import uml


@click.group("guest", short_help="Boot Linux on a fabric, or with devices of tlplab.")
def guest_group() -> None:
    """Boot an unmodified Linux on an experiment's fabric, or with devices in a virtual machine.

    \b
    Examples:
      tlplab guest uml experiments/linux/nvme.toml
      tlplab guest uml experiments/quickstart.toml --run 'lspci -nn'
      tlplab guest uml experiments/linux/nvme.toml --shell
      tlplab guest qemu examples/python/copier.py:Copier --run 'lspci -nn'
    """


guest_group.add_command(uml)
guest_group.add_command(qemu)
