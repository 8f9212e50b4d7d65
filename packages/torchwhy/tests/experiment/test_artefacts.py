"""Files appear whole or not at all, and replace none."""

import pytest

from torchwhy.experiment import CannotRunError
from torchwhy.experiment.artefacts import free_stem, write_whole


def test_existing_files_push_the_number_up(tmp_path):
    for name in ("run.json", "run_2.txt"):
        (tmp_path / name).touch()
    assert free_stem(tmp_path, "run", [".json", ".txt"], force=False) == "run_3"
    assert free_stem(tmp_path, "run", [".png"], force=False) == "run"
    assert free_stem(tmp_path, "run", [".json", ".txt"], force=True) == "run"


def test_a_failed_write_leaves_what_was_there(tmp_path):
    path = tmp_path / "run.txt"
    path.write_text("before")

    def fail(part):
        part.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(CannotRunError, match=r"cannot write .*run.txt: No space left on device"):
        write_whole(path, fail)
    assert [p.name for p in tmp_path.iterdir()] == ["run.txt"]
    assert path.read_text() == "before"


def test_a_file_in_the_way_of_the_folder_is_explained(tmp_path):
    (tmp_path / "traces").touch()
    with pytest.raises(CannotRunError, match="cannot write"):
        write_whole(tmp_path / "traces" / "a.txt", lambda part: part.write_text("x"))
