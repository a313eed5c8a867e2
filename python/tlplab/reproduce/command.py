"""`tlplab reproduce`: the experiments of a published system again, compared with the published figures."""

from __future__ import annotations

import os
from pathlib import Path

import click

from tlplab.outputs import PAGES, check_ending, check_outputs, write_text
from tlplab.reproduce import STUDIES, GuestOptions, in_guest, running


@click.command("reproduce", short_help="Repeat the experiments of a published system.")
@click.argument("study", metavar="STUDY", type=click.Choice(sorted(STUDIES)))
@click.option(
    "--experiments",
    metavar="DIR",
    default="studies",
    show_default=True,
    help="Folder of the studies and their experiments.",
)
@click.option("--json", "json_file", metavar="FILE|-", help="Write the rows; - is the standard output.")
@click.option("--report", metavar="FILE.html", help="Write one self-contained page with the paper's figures as plots.")
@click.option("--markdown", metavar="FILE|-", help="Write the study's page, like its README.md.")
@click.option(
    "--captures", metavar="DIR", help="nettlp: folder of the published captures.  [default: $TLPLAB_DATA/captures]"
)
@click.option(
    "--no-measure",
    is_flag=True,
    help="Only simulated results, without captures and measurements of this machine (nettlp), and without area (speedy).",
)
@click.option(
    "--guest",
    is_flag=True,
    help="Run the study under Linux instead (gem5, pcie-bench, speedy, after `make linux`; nettlp, after `make guest-tools`).",
)
@click.option(
    "--block",
    type=in_guest.Block(),
    metavar="SIZE",
    help="gem5 --guest: the largest block that dd reads, 512MiB at most.  [default: 64MiB]",
)
@click.option(
    "--library",
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="nettlp --guest: a checkout of the published library, to measure its tlpperf as well.",
)
@click.option("--quiet", is_flag=True, help="No table, no progress bar.")
def reproduce_command(
    study: str,
    experiments: str,
    json_file: str | None,
    report: str | None,
    markdown: str | None,
    captures: str | None,
    no_measure: bool,
    guest: bool,
    block: int | None,
    library: Path | None,
    quiet: bool,
) -> None:
    """Repeat the experiments of a published system and compare them with the published results.

    It runs in a clone of tlplab, which has the studies; packages do not.

    \b
    Studies: differential, gem5, gpu-host, nettlp, p2p, pcie-bench, speedy (after
    `make rtl`).

    \b
    Examples:
      tlplab reproduce gem5 --json out/gem5.json
      tlplab reproduce pcie-bench --report out/pcie-bench.html
      tlplab reproduce nettlp --no-measure
      tlplab reproduce speedy --guest
      tlplab reproduce gem5 --guest --block 512MiB
      tlplab reproduce nettlp --guest --library libtlp
    """
    check_outputs(
        {"--json": json_file, "--report": report, "--markdown": markdown}, to_stdout={"--json", "--markdown"}, inputs={}
    )
    if report is not None:
        check_ending("--report", report, PAGES)
    chosen = running.find_study(study, experiments)
    if captures is not None and study != "nettlp":
        raise click.UsageError("--captures is for nettlp")
    if chosen.beside is None and no_measure:
        raise click.UsageError(f"--no-measure is for nettlp and speedy; {study} has no measurements")
    if captures is not None and not os.path.isdir(captures):
        raise click.UsageError(f"--captures {captures}: there is no such folder")
    if block is not None and not guest:
        raise click.UsageError("--block is for --guest")
    if library is not None and not guest:
        raise click.UsageError("--library is for --guest")
    if guest:
        if captures is not None or no_measure:
            raise click.UsageError("--captures and --no-measure are not for --guest")
        under = running.by_guest(chosen, experiments, GuestOptions(block, library), quiet=quiet)
        if json_file is not None:
            write_text(json_file, running.as_json(under.rows))
        if report is not None:
            write_text(report, running.guest_report(chosen, under))
        if markdown is not None:
            write_text(markdown, under.page)
        if not quiet and "-" not in (json_file, markdown):
            running.show(under.rows)
        return
    place = running.experiments_of(chosen, experiments)
    running.check_built(chosen, place)
    outcomes = running.outcomes_of(chosen, place, quiet=quiet)
    more = [] if chosen.beside is None or no_measure else chosen.beside(place, captures, quiet=quiet)
    rows = [*chosen.rows(outcomes), *(row for one in more for row in one.rows)]
    if json_file is not None:
        write_text(json_file, running.as_json(rows))
    if report is not None:
        write_text(report, running.report(chosen, outcomes, rows, more))
    if markdown is not None:
        write_text(markdown, running.texts(chosen, outcomes, rows, more))
    if not quiet and "-" not in (json_file, markdown):
        running.show(rows)
