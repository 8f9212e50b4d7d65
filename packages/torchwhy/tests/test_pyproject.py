"""Which `pyproject.toml` counts."""

from torchwhy.pyproject import find_pyproject


def test_the_nearest_file_counts(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    assert find_pyproject(tmp_path / "a" / "b") == tmp_path / "pyproject.toml"
    (tmp_path / "a" / "pyproject.toml").touch()
    assert find_pyproject(tmp_path / "a" / "b") == tmp_path / "a" / "pyproject.toml"


def test_a_folder_of_that_name_is_no_file(tmp_path):
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "a" / "pyproject.toml").mkdir(parents=True)
    assert find_pyproject(tmp_path / "a") == tmp_path / "pyproject.toml"
