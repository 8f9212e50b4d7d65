"""Folders are numbered, claimed at once, and appear whole."""

import os
from pathlib import Path

import pytest

from torchwhy.capture.advice import Spelling
from torchwhy.capture.folder import claim, claim_temporary, rank_of
from torchwhy.capture.options import Options
from torchwhy.capture.schedule import Schedule
from torchwhy.capture.session import Session


def test_nothing_is_overwritten(tmp_path):
    first = claim(tmp_path / "run")
    (first.partial / "part").touch()
    first.publish()
    second, third = claim(tmp_path / "run"), claim(tmp_path / "run")
    assert [folder.final.name for folder in (first, second, third)] == ["run", "run-2", "run-3"]


def test_a_folder_appears_when_it_is_whole(tmp_path):
    folder = claim(tmp_path / "run")
    (folder.partial / "part").write_text("x")
    assert not folder.final.exists()
    folder.publish()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert (folder.final / "part").read_text() == "x"


def test_an_empty_folder_is_filled(tmp_path):
    (tmp_path / "run").mkdir()
    folder = claim(tmp_path / "run")
    (folder.partial / "part").touch()
    assert folder.publish() == tmp_path / "run"
    assert [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*"))] == ["run", "run/part"]


def test_what_was_put_into_it_meanwhile_stays(tmp_path):
    (tmp_path / "run").mkdir()
    folder = claim(tmp_path / "run")
    (tmp_path / "run" / "mine").touch()
    with pytest.raises(OSError, match="not empty"):
        folder.publish()
    assert folder.partial.is_dir()


def test_a_name_that_no_folder_can_have_gives_way_to_a_temporary_one(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for path in ("/", tmp_path / ("a" * 252)):
        session = Session(Path(path), Schedule(), Options(), [], Spelling("{}={}", ", "), launched=True)
        assert session.notes[0].startswith(f"cannot write {path}: ")
        assert session.folder.partial.is_dir()
        assert tmp_path in session.folder.partial.parents


def test_ranks_share_a_folder(tmp_path):
    folders = [claim(tmp_path / "run", rank) for rank in (0, 1, 0)]
    assert [str(folder.final.relative_to(tmp_path)) for folder in folders] == ["run/rank0", "run/rank1", "run-2/rank0"]
    folders[2].discard()
    assert not (tmp_path / "run-2").exists()


@pytest.mark.parametrize("rank", [None, 0])
@pytest.mark.parametrize("there", ["", "a", "a/b", "a/b/run-2"])
def test_a_discarded_folder_leaves_only_what_was_there(tmp_path, there, rank):
    (tmp_path / there).mkdir(parents=True, exist_ok=True)
    before = sorted(tmp_path.rglob("*"))
    folder = claim(tmp_path / "a/b/run", rank)
    (folder.partial / "part").touch()
    folder.discard()
    assert sorted(tmp_path.rglob("*")) == before


def test_a_discarded_temporary_folder_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    claim_temporary("run").discard()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_place_is_an_error(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError):
        claim(tmp_path / "run")


def test_a_rank_needs_a_world():
    assert rank_of({"RANK": "1"}) is None
    assert rank_of({"RANK": "1", "WORLD_SIZE": "2"}) == 1
