"""The workaround for old drivers is applied to old drivers."""

import pytest

from torchwhy.capture.cuda_graphs import driver_version, needed


@pytest.mark.parametrize(
    ("driver", "cuda", "old"),
    [
        ("525.85.12", "12.0", False),
        ("525.85.11", "12.0", True),
        ("450.80.02", "11.0", True),
        ("550.54.14", "11.8", True),
        ("550.54.14", "13.0", False),
        (None, "12.0", False),
        ("525.60.13", None, False),
    ],
)
def test_the_limits_are_those_pytorch_documents(driver, cuda, old):
    assert needed(driver, cuda) is old


def test_the_version_is_read_from_the_drivers_file(tmp_path):
    file = tmp_path / "version"
    file.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  525.85.12  Sat Jan 28 02:10:06 UTC 2023\n")
    assert driver_version(file) == "525.85.12"
    assert driver_version(tmp_path / "none") is None
