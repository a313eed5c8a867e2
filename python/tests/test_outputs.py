"""Output files: refused before the work, written whole or not at all."""

from pathlib import Path

import click
import pytest

from tlplab.outputs import check_outputs, whole_file, write_text


def refused(outputs: dict[str, str | None], **inputs: str) -> str:
    with pytest.raises(click.UsageError) as caught:
        check_outputs(outputs, to_stdout={"--json"}, inputs=inputs)
    return caught.value.message


def test_a_missing_folder_is_named_with_its_cure(tmp_path: Path) -> None:
    assert f"mkdir -p {tmp_path}/none" in refused({"--report": f"{tmp_path}/none/r.html"})


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    assert "this is a folder" in refused({"--report": str(tmp_path)})


def test_two_outputs_may_not_be_one_file(tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    assert refused({"--json": path, "--report": f"{tmp_path}/./a"}).startswith("--report and --json both name")


def test_an_output_may_not_overwrite_the_experiment(tmp_path: Path) -> None:
    path = str(tmp_path / "a.toml")
    assert "both name" in refused({"--json": path}, experiment=path)


def test_only_text_goes_to_the_standard_output() -> None:
    assert "cannot go to the standard output" in refused({"--pcap": "-"})
    check_outputs({"--json": "-"}, to_stdout={"--json"}, inputs={})


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write_text(str(path), "first\n")
    write_text(str(path), "second\n")
    assert path.read_text() == "second\n"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_file_stays_as_it_was_if_its_writer_fails(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("as it was")

    def half() -> None:
        with whole_file(str(path)) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half()
    assert path.read_text() == "as it was"
    assert list(tmp_path.iterdir()) == [path]
    with whole_file(str(path)) as file:
        file.write(b"who")
        file.write(b"le")
        assert path.read_text() == "as it was"
    assert path.read_text() == "whole"


def test_the_standard_output_has_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    write_text("-", "text\n")
    assert capsys.readouterr().out == "text\n"


def test_a_refusal_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=f"{tmp_path}/none/out: cannot write"):
        write_text(f"{tmp_path}/none/out", "text\n")
