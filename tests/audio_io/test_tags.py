"""Tags and encodings that a file's copy keeps."""

import io

import pytest
import torch

from torchfx import audio_io
from torchfx.errors import ArgumentError, ArgumentTypeError

FS = 48_000
SILENCE = torch.zeros(1, 100)
TEXTS = {
    "title": "A title", "artist": "Somebody", "album": "An album", "comment": "Two\nlines", "date": "2024",
    "copyright": "(c)", "software": "editor", "genre": "Blues", "tracknumber": "7", "license": "CC0",
}  # fmt: skip


def written(suffix, tags):
    file = io.BytesIO()
    audio_io.save(file, SILENCE, FS, format=suffix, tags=tags)
    file.seek(0)
    return audio_io.info(file).tags


def without_library(tags):
    """Return tags without what libsndfile appends to the software's name."""
    return {name: text.split(" (libsndfile")[0] for name, text in tags.items()}


LACKING = {
    "wav": {"license"},
    "flac": set(),
    "ogg": set(),
    "aiff": {"album", "date", "software", "genre", "tracknumber", "license"},
    "mp3": {"copyright", "license", "software"},
}


def test_texts_exist_for_every_tag():
    assert set(TEXTS) == set(audio_io.TAGS)


@pytest.mark.parametrize("suffix", LACKING)
def test_tags_come_back_where_the_format_has_a_place_for_them(suffix):
    expected = {name: text for name, text in TEXTS.items() if name not in LACKING[suffix]}
    assert without_library(written(suffix, TEXTS)) == expected


@pytest.mark.parametrize("suffix", LACKING)
def test_no_tags_and_empty_ones_are_none(suffix):
    assert written(suffix, None) == written(suffix, {}) == written(suffix, {"title": ""}) == {}


@pytest.mark.parametrize("suffix", ["wav", "flac", "ogg"])
def test_tags_hold_any_letters(suffix):
    assert written(suffix, {"title": "Größe 日本 🎵"}) == {"title": "Größe 日本 🎵"}


@pytest.mark.parametrize(("suffix", "longest"), [("wav", 2045), ("aiff", 8189)])
@pytest.mark.parametrize("name", ["title", "comment"])
def test_the_longest_text_comes_back_whole(suffix, longest, name):
    for length in (longest - 1, longest):
        assert written(suffix, {name: "x" * length}) == {name: "x" * length}
    with pytest.raises(
        ArgumentError, match=rf"tags\['{name}'\] must be at most {longest} bytes in .* got {longest + 1}"
    ):
        written(suffix, {name: "x" * (longest + 1)})


@pytest.mark.parametrize("suffix", ["wav", "flac", "ogg"])
def test_the_longest_name_of_a_software_comes_back_whole(suffix):
    assert without_library(written(suffix, {"software": "x" * 100})) == {"software": "x" * 100}
    with pytest.raises(ArgumentError, match=r"tags\['software'\] must be at most 100 bytes in .* files, got 101"):
        written(suffix, {"software": "x" * 101})


@pytest.mark.parametrize("suffix", ["flac", "ogg", "mp3"])
def test_long_texts_come_back_whole(suffix):
    assert written(suffix, {"comment": "long " * 2000})["comment"].strip() == ("long " * 2000).strip()


@pytest.mark.parametrize(
    ("suffix", "tags", "error", "message"),
    [
        ("aiff", {"title": "Größe"}, ArgumentError, r"tags\['title'\] must be ASCII in AIFF files, got 'ö'"),
        ("mp3", {"artist": "日本"}, ArgumentError, r"tags\['artist'\] must be ASCII in MP3 files, got '日'"),
        ("wav", {"title": "a\ud800"}, ArgumentError, r"tags\['title'\] must be UTF-8 in WAV files, got '\\ud800'"),
        ("wav", {"title": "a\0b"}, ArgumentError, r"tags\['title'\] must hold no null character, got one at 1"),
        ("wav", {"mood": "blue"}, ArgumentError, "tags must be among title, artist, .*, license, got 'mood'"),
        ("wav", {"title": 3}, ArgumentTypeError, r"tags\['title'\] must be a text, got 3 \(int\)"),
        ("wav", ["title"], ArgumentTypeError, r"tags must be a mapping of texts, got \['title'\] \(list\)"),
    ],
)
def test_texts_that_do_not_fit_raise(suffix, tags, error, message):
    with pytest.raises(error, match=message):
        written(suffix, tags)


def test_kept_tags_are_those_that_fit():
    tags = {**TEXTS, "title": "Größe", "comment": "x" * 3000, "mood": "blue"}
    assert set(audio_io.kept_tags("a.wav", tags)) == set(TEXTS) - {"license", "comment"}
    assert set(audio_io.kept_tags("a.mp3", tags)) == set(TEXTS) - LACKING["mp3"] - {"title"}
    assert set(audio_io.kept_tags("a.aiff", tags)) == {"artist", "comment", "copyright"}
    assert set(audio_io.kept_tags("a.bin", tags, format="flac")) == set(TEXTS)
    assert written("wav", audio_io.kept_tags("a.wav", tags))["title"] == "Größe"


def test_a_softwares_name_does_not_grow_with_every_copy():
    first = written("wav", {"software": "editor"})
    assert written("wav", first) == written("flac", first) == first


# --- kept encodings ---------------------------------------------------------------------------------------------------

KEPT = {  # source: output's encoding in WAV, FLAC, AIFF
    ("WAV", "PCM_U8"): ("PCM_U8", "PCM_S8", "PCM_S8"),
    ("WAV", "PCM_16"): ("PCM_16", "PCM_16", "PCM_16"),
    ("WAV", "PCM_24"): ("PCM_24", "PCM_24", "PCM_24"),
    ("WAV", "PCM_32"): ("PCM_32", "PCM_24", "PCM_32"),
    ("WAV", "FLOAT"): ("FLOAT", "PCM_24", "FLOAT"),
    ("WAV", "DOUBLE"): ("DOUBLE", "PCM_24", "DOUBLE"),
    ("WAV", "ULAW"): ("ULAW", "PCM_24", "PCM_24"),
    ("FLAC", "PCM_S8"): ("PCM_U8", "PCM_S8", "PCM_S8"),
    ("FLAC", "PCM_24"): ("PCM_24", "PCM_24", "PCM_24"),
    ("AIFF", "PCM_S8"): ("PCM_U8", "PCM_S8", "PCM_S8"),
    ("AIFF", "PCM_U8"): ("PCM_U8", "PCM_S8", "PCM_U8"),
    ("CAF", "ALAC_20"): ("PCM_24", "PCM_24", "PCM_24"),
    ("CAF", "ALAC_32"): ("PCM_32", "PCM_24", "PCM_32"),
    ("AIFF", "DWVW_12"): ("PCM_16", "PCM_16", "PCM_16"),
    ("OGG", "VORBIS"): ("FLOAT", "PCM_24", "PCM_24"),
    ("MP3", "MPEG_LAYER_III"): ("FLOAT", "PCM_24", "PCM_24"),
    ("WAV", "MPEG_LAYER_III"): ("FLOAT", "PCM_24", "PCM_24"),  # libsndfile reads it and does not write it
}


@pytest.mark.parametrize(("format", "encoding"), KEPT)
def test_an_output_keeps_its_sources_bit_depth(format, encoding):
    source = audio_io.AudioInfo(FS, 1, 100, format, encoding)
    found = tuple(audio_io.kept_encoding(name, source) for name in ("a.wav", "a.flac", "a.aiff"))
    assert found == KEPT[format, encoding]
    for name, kept in zip(("a.wav", "a.flac", "a.aiff"), found, strict=True):
        file = io.BytesIO()
        audio_io.save(file, SILENCE, FS, format=name[2:], encoding=kept)
        file.seek(0)
        assert audio_io.info(file).encoding == kept


@pytest.mark.parametrize(("format", "encoding"), KEPT)
def test_lossy_outputs_have_one_encoding(format, encoding):
    source = audio_io.AudioInfo(FS, 1, 100, format, encoding)
    assert audio_io.kept_encoding("a.ogg", source) == "VORBIS"
    assert audio_io.kept_encoding("a.bin", source, format="mp3") == "MPEG_LAYER_III"
    assert audio_io.kept_encoding(io.BytesIO(), source, format="mp3") == "MPEG_LAYER_III"


def test_an_unknown_format_has_no_encoding():
    with pytest.raises(ArgumentError, match="path must end in one of"):
        audio_io.kept_encoding("a.xyz", audio_io.AudioInfo(FS, 1, 100, "WAV", "PCM_16"))


def test_bits_are_those_of_the_encoding():
    bits = {"PCM_16": 16, "PCM_24": 24, "FLOAT": 32, "DOUBLE": 64, "VORBIS": None, "ULAW": None}
    found = {encoding: audio_io.AudioInfo(FS, 1, 100, "WAV", encoding).bits for encoding in bits}
    assert found == bits
