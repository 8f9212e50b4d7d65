"""Tags and chapters that libsndfile does not read or write: ID3 frames and Vorbis comments, through mutagen.

Chapters are ID3's CHAP frames (ID3v2 Chapter Frame Addendum 1.0) in MP3, WAV and AIFF, and the comments CHAPTER001 and
CHAPTER001NAME in FLAC, Vorbis and Opus (https://wiki.xiph.org/Chapter_Extension).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from torchfx.audio_io.formats import Chapter

__all__ = ["COMMENTED", "HOLDING", "has_mutagen", "read_more", "warn_of_loss", "write_more"]

WITH_ID3 = {"MP3", "WAV", "AIFF"}
COMMENTED = {"FLAC", "OGG", "OPUS"}
HOLDING = WITH_ID3 | COMMENTED
FRAMES = {
    "title": "TIT2", "artist": "TPE1", "album": "TALB", "albumartist": "TPE2", "composer": "TCOM", "date": "TDRC",
    "copyright": "TCOP", "software": "TSSE", "genre": "TCON", "tracknumber": "TRCK", "discnumber": "TPOS",
}  # fmt: skip
CLASSES = {  # by container, or by encoding in an Ogg
    "WAV": "wave.WAVE", "AIFF": "aiff.AIFF", "FLAC": "flac.FLAC",
    "VORBIS": "oggvorbis.OggVorbis", "OPUS": "oggopus.OggOpus",
}  # fmt: skip
LICENSE = "LICENSE"  # of the frame for texts without a frame


@cache
def has_mutagen() -> bool:
    """Whether the extra `tags` is installed."""
    return find_spec("mutagen") is not None


@cache
def warn_of_loss() -> None:
    """Say once in a process that a file has tags or chapters that are lost without the extra."""
    warnings.warn("some tags or chapters are lost; pip install mutagen keeps them", UserWarning, stacklevel=2)


def read_more(container: str, encoding: str, file: Any, name: str) -> tuple[dict[str, str], tuple[Chapter, ...]]:
    """Return the tags and the chapters of an open file."""
    import mutagen
    from mutagen.id3 import ID3, ID3NoHeaderError

    try:
        if container == "MP3":
            return _from_id3(ID3(fileobj=file, load_v1=False))  # libsndfile reads ID3v1
        held = _mutagen_class(container, encoding)(fileobj=file)
    except ID3NoHeaderError:
        return {}, ()
    except mutagen.MutagenError as error:
        warnings.warn(f"cannot read the tags of {name}: {' '.join(str(error).split())}", UserWarning, stacklevel=2)
        return {}, ()
    if held.tags is None:
        return {}, ()
    return _from_id3(held.tags) if container in WITH_ID3 else _from_comments(held.tags)


def write_more(
    path: str, container: str, encoding: str, tags: Mapping[str, str], chapters: Sequence[Chapter], length_s: float
) -> None:
    """Add tags and chapters to a file that has samples; an MP3 has no tags yet."""
    if container == "MP3":
        from mutagen.id3 import ID3

        held = texts = ID3()
    else:
        held = _mutagen_class(container, encoding)(path)
        if held.tags is None:
            held.add_tags()
        texts = held.tags
    if container in COMMENTED:
        _add_comments(texts, tags, chapters)
    else:
        _add_frames(texts, tags, chapters, length_s)
    held.save(path)


def _mutagen_class(container: str, encoding: str) -> Any:
    named = CLASSES.get(container) or CLASSES.get(encoding, "oggflac.OggFLAC")
    module, _, name = named.partition(".")
    return getattr(import_module(f"mutagen.{module}"), name)


def _from_id3(frames: Any) -> tuple[dict[str, str], tuple[Chapter, ...]]:
    texts = {name: _text(frames.get(frame)) for name, frame in FRAMES.items()}
    comments = frames.getall("COMM")
    texts["comment"] = next((_text(each) for each in comments if not each.desc), "")
    texts["license"] = _text(frames.get(f"TXXX:{LICENSE}")) or next((each.url for each in frames.getall("WCOP")), "")
    chapters = (Chapter(each.start_time / 1000, _text(each.sub_frames.get("TIT2"))) for each in frames.getall("CHAP"))
    return {name: text for name, text in texts.items() if text}, _in_order(chapters)


def _text(frame: Any) -> str:
    return "" if frame is None else "\n".join(map(str, frame.text))


def _add_frames(frames: Any, tags: Mapping[str, str], chapters: Sequence[Chapter], length_s: float) -> None:
    from mutagen import id3

    utf8 = {"encoding": id3.Encoding.UTF8}
    for name, text in tags.items():
        if name == "comment":
            frames.setall("COMM", [id3.COMM(lang="und", desc="", text=text, **utf8)])
        elif name == "license":
            frames.add(id3.TXXX(desc=LICENSE, text=text, **utf8))
        else:
            frames.add(id3.Frames[FRAMES[name]](text=text, **utf8))
    starts = [round(1000 * each.start_s) for each in chapters]
    ends = [*starts[1:], round(1000 * length_s)]
    names = [f"chp{i}" for i in range(len(chapters))]
    for name, start, end, chapter in zip(names, starts, ends, chapters, strict=False):
        title = [id3.TIT2(text=chapter.title, **utf8)]
        frames.add(id3.CHAP(element_id=name, start_time=start, end_time=max(start, end), sub_frames=title))
    if names:
        flags = id3.CTOCFlags.TOP_LEVEL | id3.CTOCFlags.ORDERED
        frames.add(id3.CTOC(element_id="toc", flags=flags, child_element_ids=names, sub_frames=[]))


def _from_comments(comments: Any) -> tuple[dict[str, str], tuple[Chapter, ...]]:
    texts = {name: "\n".join(comments[name]) for name in (*FRAMES, "comment", "license") if name in comments}
    chapters = []
    for name, values in comments.as_dict().items():
        time = re.fullmatch(r"(\d+):([0-5]\d):([0-5]\d(?:\.\d+)?)", values[0])
        if re.fullmatch(r"chapter\d+", name.lower()) and time is not None:
            start = int(time[1]) * 3600 + int(time[2]) * 60 + float(time[3])
            chapters.append(Chapter(start, comments.get(f"{name}name", [""])[0]))
    return texts, _in_order(chapters)


def _add_comments(comments: Any, tags: Mapping[str, str], chapters: Sequence[Chapter]) -> None:
    for name, text in tags.items():
        comments[name] = text
    for i, chapter in enumerate(chapters, 1):
        ms = round(1000 * chapter.start_s)
        seconds = f"{ms // 60_000 % 60:02}:{ms // 1000 % 60:02}.{ms % 1000:03}"
        comments[f"CHAPTER{i:03}"] = f"{ms // 3_600_000:02}:{seconds}"
        comments[f"CHAPTER{i:03}NAME"] = chapter.title


def _in_order(chapters: Any) -> tuple[Chapter, ...]:
    return tuple(sorted(chapters, key=lambda each: each.start_s))
