"""Features in files: NumPy's .npy and .npz, .safetensors, Parquet. They are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from torchfx.audio_io import temporary
from torchfx.audio_io.messages import file_errors
from torchfx.audio_io.target import Target
from torchfx.errors import ArgumentError

__all__ = ["FEATURE_FORMATS", "check_installed", "feature_format", "save_features"]

FEATURE_FORMATS = {name: f".{name}" for name in ("npy", "npz", "safetensors", "parquet")}
PACKAGES = {"safetensors": "safetensors", "parquet": "pyarrow"}

Array = npt.NDArray[Any]
Facts = Mapping[str, str]


def check_installed(form: str) -> None:
    """Raise ArgumentError where the package that writes a format is missing: pip install safetensors or pyarrow."""
    from importlib.util import find_spec

    package = PACKAGES.get(form)
    if package is not None and find_spec(package) is None:
        raise ArgumentError(f"format {form} needs the package {package}: pip install {package}")


def feature_format(target: str | BinaryIO, form: str | None) -> str:
    """Return the format of a file of features: the one requested, else its suffix's; of a file object .npy.

    Raises:
        ArgumentError: a suffix of none of the formats, or a package that is missing.
    """
    if form is None:
        form = PurePath(target).suffix.lower().lstrip(".") if isinstance(target, (str, os.PathLike)) else "npy"
    if form not in FEATURE_FORMATS:
        raise ArgumentError(f"features go into files of {', '.join(FEATURE_FORMATS.values())}, got {target}")
    check_installed(form)
    return form


def save_features(target: str | BinaryIO, features: Array, form: str, facts: Facts) -> None:
    """Write features, at once under their name.

    Args:
        target: a path, or a binary file object.
        features: (..., bins, frames).
        form: "npy" holds them alone; "npz" arrays `features` and what is in `facts`, as texts; "safetensors" the tensor
            `features`, and `facts` as metadata; "parquet" a row for each frame: `signal`, the place among all but the
            last two dimensions, `frame`, and `features`, a list of bins; `facts` are the schema's metadata.
        facts: what belongs to the features, such as the sample rate.

    Raises:
        ArgumentError: complex features in a format that holds none.
        AudioFileError: the file cannot be written.
    """
    if np.iscomplexobj(features) and form in PACKAGES:
        raise ArgumentError(f"format must be npy or npz for complex features, got {form}")
    where = Target(target)
    with file_errors("write", where.name):
        begun = temporary.create(where.folder, FEATURE_FORMATS[form], where.mode)
        try:
            with open(begun, "wb") as file:  # noqa: PTH123
                WRITERS[form](file, np.ascontiguousarray(features), facts)
            where.receive(begun)
        finally:
            temporary.remove(begun)


def _npy(file: BinaryIO, features: Array, facts: Facts) -> None:
    np.save(file, features, allow_pickle=False)


def _npz(file: BinaryIO, features: Array, facts: Facts) -> None:
    arrays: dict[str, Any] = {name: np.asarray(fact) for name, fact in facts.items()}
    np.savez(file, features=features, **arrays)


def _safetensors(file: BinaryIO, features: Array, facts: Facts) -> None:
    from safetensors.numpy import save

    file.write(save({"features": features}, metadata=dict(facts)))


def _parquet(file: BinaryIO, features: Array, facts: Facts) -> None:
    import pyarrow
    from pyarrow import parquet

    rows = features.reshape(-1, *features.shape[-2:]).swapaxes(-1, -2)  # (signals, frames, bins)
    signals, frames, bins = rows.shape
    columns = {
        "signal": pyarrow.array(np.repeat(np.arange(signals, dtype=np.int32), frames)),
        "frame": pyarrow.array(np.tile(np.arange(frames), signals)),
        "features": pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(rows.reshape(-1)), bins),
    }
    parquet.write_table(pyarrow.table(columns).replace_schema_metadata(dict(facts)), file)


WRITERS: dict[str, Callable[[BinaryIO, Array, Facts], None]] = {
    "npy": _npy,
    "npz": _npz,
    "safetensors": _safetensors,
    "parquet": _parquet,
}
