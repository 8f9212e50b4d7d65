"""Tags and encodings that a file's copy keeps."""

import io

import pytest
import torch

from torchfx import audio_io
from torchfx.audio_io import mutagen_tags, tags, writer
from torchfx.audio_io.source import Source
from torchfx.errors import ArgumentError, ArgumentTypeError

FS = 48_000
SILENCE = torch.zeros(1, 100)
TEXTS = {
    "title": "A title", "artist": "Somebody", "album": "An album", "comment": "Two\nlines", "date": "2024",
    "copyright": "(c)", "software": "editor", "genre": "Blues", "tracknumber": "7", "license": "CC0",
    "albumartist": "Somebody else", "composer": "Nobody", "discnumber": "2",
}  # fmt: skip


def written(suffix, tags):
    file = io.BytesIO()
    audio_io.save(file, SILENCE, FS, format=suffix, tags=tags)
    file.seek(0)
    return audio_io.info(file).tags


def without_library(tags):
    """Return tags without what libsndfile appends to the software's name."""
    return {name: text.split(" (libsndfile")[0] for name, text in tags.items()}


MUTAGENS = {"albumartist", "composer", "discnumber"}
LACKING = {  # without mutagen
    "wav": MUTAGENS | {"license"},
    "flac": MUTAGENS,
    "ogg": MUTAGENS,
    "opus": MUTAGENS,
    "aiff": MUTAGENS | {"album", "date", "software", "genre", "tracknumber", "license"},
    "mp3": MUTAGENS | {"copyright", "license", "software"},
}
CHAPTERS = (audio_io.Chapter(0.0, "Größe"), audio_io.Chapter(0.00051, ""), audio_io.Chapter(0.002, "日本"))


@pytest.fixture
def no_mutagen(monkeypatch):
    """The extra `tags` is not installed, and its warning wasn't given yet."""
    monkeypatch.setattr(tags, "has_mutagen", lambda: False)
    monkeypatch.setattr(writer, "has_mutagen", lambda: False)
    mutagen_tags.warn_of_loss.cache_clear()


@pytest.fixture
def mutagen():
    return pytest.importorskip("mutagen")


def test_texts_exist_for_every_tag():
    assert set(TEXTS) == set(audio_io.TAGS)


@pytest.mark.parametrize("suffix", LACKING)
@pytest.mark.filterwarnings("ignore:some tags")
def test_tags_come_back_where_libsndfile_has_a_place_for_them(suffix, no_mutagen):
    expected = {name: text for name, text in TEXTS.items() if name not in LACKING[suffix]}
    assert without_library(written(suffix, TEXTS)) == expected


@pytest.mark.parametrize("suffix", LACKING)
def test_all_tags_come_back_with_mutagen(suffix, mutagen):
    found = without_library(written(suffix, TEXTS))
    assert found == {name: text for name, text in TEXTS.items() if (suffix, name) != ("mp3", "software")}


@pytest.mark.parametrize("suffix", LACKING)
def test_no_tags_and_empty_ones_are_none(suffix):
    assert written(suffix, None) == written(suffix, {}) == written(suffix, {"title": ""}) == {}


@pytest.mark.parametrize("suffix", ["wav", "flac", "ogg"])
def test_tags_hold_any_letters(suffix):
    assert written(suffix, {"title": "Größe 日本 🎵"}) == {"title": "Größe 日本 🎵"}


@pytest.mark.parametrize(("suffix", "longest"), [("wav", 2045), ("aiff", 8189)])
@pytest.mark.parametrize("name", ["title", "comment"])
def test_the_longest_text_comes_back_whole(suffix, longest, name, no_mutagen):
    for length in (longest - 1, longest):
        assert written(suffix, {name: "x" * length}) == {name: "x" * length}
    with pytest.raises(
        ArgumentError, match=rf"tags\['{name}'\] must be at most {longest} bytes in .* got {longest + 1}"
    ):
        written(suffix, {name: "x" * (longest + 1)})


@pytest.mark.parametrize("suffix", ["wav", "flac", "ogg"])
def test_the_longest_name_of_a_software_comes_back_whole(suffix, no_mutagen):
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
        ("wav", {"mood": "blue"}, ArgumentError, "tags must be among title, artist, .*, discnumber, got 'mood'"),
        ("wav", {"title": 3}, ArgumentTypeError, r"tags\['title'\] must be a text, got 3 \(int\)"),
        ("wav", ["title"], ArgumentTypeError, r"tags must be a mapping of texts, got \['title'\] \(list\)"),
    ],
)
def test_texts_that_do_not_fit_raise(suffix, tags, error, message, no_mutagen):
    with pytest.raises(error, match=message):
        written(suffix, tags)


@pytest.mark.filterwarnings("ignore:some tags")
def test_kept_tags_are_those_that_fit(no_mutagen):
    tags = {**TEXTS, "title": "Größe", "comment": "x" * 3000, "mood": "blue"}
    assert set(audio_io.kept_tags("a.wav", tags)) == set(TEXTS) - LACKING["wav"] - {"comment"}
    assert set(audio_io.kept_tags("a.mp3", tags)) == set(TEXTS) - LACKING["mp3"] - {"title"}
    assert set(audio_io.kept_tags("a.aiff", tags)) == {"artist", "comment", "copyright"}
    assert set(audio_io.kept_tags("a.bin", tags, format="flac")) == set(TEXTS) - MUTAGENS
    assert written("wav", audio_io.kept_tags("a.wav", tags))["title"] == "Größe"


@pytest.mark.parametrize("suffix", LACKING)
def test_any_text_comes_back_with_mutagen(suffix, mutagen):
    texts = {"title": "Größe 日本 🎵", "artist": "é" * 5000, "copyright": "©", "comment": "x" * 3000}
    assert audio_io.kept_tags(f"a.{suffix}", texts) == texts
    found = written(suffix, texts)
    found.pop("software", None)  # LAME's
    assert found == texts
    for text in ("a\ud800", "a\0b"):
        with pytest.raises(ArgumentError, match=r"^tags\['title'\] must "):
            written(suffix, {"title": text})


@pytest.mark.parametrize("suffix", LACKING)
@pytest.mark.parametrize("texts", [{}, TEXTS])
def test_chapters_come_back_to_the_millisecond(suffix, texts, mutagen, tmp_path):
    path = tmp_path / f"a.{suffix}"
    behind = audio_io.Chapter(1.0, "behind the end")
    audio_io.save(path, SILENCE, FS, tags=texts, chapters=(*CHAPTERS, behind))
    starts = [round(each.start_s, 3) for each in CHAPTERS]
    for source in (path, io.BytesIO(path.read_bytes())):
        with audio_io.Reader(source) as reader:
            assert [each.start_s for each in reader.chapters] == starts
            assert [each.title for each in reader.chapters] == [each.title for each in CHAPTERS]
            assert set(texts) - {"software"} <= set(reader.tags)
            assert reader.read(200).shape[1] == reader.frames >= 100


def test_players_find_the_chapters(mutagen, tmp_path):
    """A table of contents names them in order, and each ends where the next begins: ID3v2 Chapter Frame Addendum."""
    from mutagen.id3 import ID3

    audio_io.save(tmp_path / "a.mp3", torch.zeros(1, FS), FS, chapters=[audio_io.Chapter(t, str(t)) for t in (0, 0.25)])
    frames = ID3(tmp_path / "a.mp3")
    (contents,) = frames.getall("CTOC")
    found = [frames[f"CHAP:{name}"] for name in contents.child_element_ids]
    assert [(each.start_time, each.end_time, str(each.sub_frames["TIT2"])) for each in found] == [
        (0, 250, "0"),
        (250, 1000, "0.25"),
    ]


def test_frames_of_other_programs_are_read(mutagen, tmp_path):
    from mutagen.id3 import CHAP, COMM, ID3, TIT2, WCOP

    audio_io.save(tmp_path / "a.mp3", SILENCE, FS)
    comments = [COMM(lang="eng", desc="other", text="no"), COMM(lang="deu", desc="", text=["a", "b"])]
    frames = ID3()
    for frame in (*comments, WCOP(url="http://x"), CHAP(element_id="x", start_time=9, end_time=9, sub_frames=[])):
        frames.add(frame)
    frames.add(TIT2(encoding=1, text="日"))
    frames.save(tmp_path / "a.mp3", v2_version=3)
    found = audio_io.info(tmp_path / "a.mp3")
    assert found.chapters == (audio_io.Chapter(0.009, ""),)
    assert (found.tags["title"], found.tags["license"]) == ("日", "http://x")


def test_silence_behind_a_size_of_zero_is_no_row_of_chunks(tmp_path):
    """Programs that write to a pipe leave the size at 0; looking at every 8 bytes for a chunk would take minutes."""
    audio_io.save(tmp_path / "a.wav", torch.zeros(1, 1000), FS, bits_per_sample=16)
    content = bytearray((tmp_path / "a.wav").read_bytes())
    at = content.index(b"data")
    content[at + 4 : at + 8] = bytes(4)
    reads = []

    class Counting(io.BytesIO):
        def read(self, size=-1):
            reads.append(size)
            return super().read(size)

    assert not Source(Counting(bytes(content))).chunks.with_id3
    assert len(reads) < 20


def test_damaged_frames_do_not_keep_the_sound_from_being_read(mutagen, tmp_path):
    audio_io.save(tmp_path / "a.wav", SILENCE, FS, tags={"license": "CC0"})
    content = (tmp_path / "a.wav").read_bytes()
    at = content.index(b"ID3")
    (tmp_path / "a.wav").write_bytes(content[: at + 3] + b"\x09" + content[at + 4 :])
    with pytest.warns(UserWarning, match=r"^cannot read the tags of .*a\.wav: .*2\.9"):
        assert audio_io.load(tmp_path / "a.wav")[0].shape == SILENCE.shape


@pytest.mark.parametrize("suffix", LACKING)
def test_what_is_lost_without_mutagen_is_said_once(suffix, mutagen, tmp_path, request):
    audio_io.save(tmp_path / f"a.{suffix}", SILENCE, FS, chapters=CHAPTERS)
    audio_io.save(tmp_path / f"b.{suffix}", SILENCE, FS, tags={"title": "plain"})
    request.getfixturevalue("no_mutagen")
    assert audio_io.info(tmp_path / f"b.{suffix}").tags["title"] == "plain"  # no warning: nothing is lost
    with pytest.warns(UserWarning, match=r"^some tags or chapters are lost; pip install mutagen"):
        assert audio_io.info(tmp_path / f"a.{suffix}").chapters == ()
    audio_io.info(tmp_path / f"a.{suffix}")  # said


@pytest.mark.parametrize(
    "given", [{"tags": {"composer": "Nobody"}}, {"chapters": CHAPTERS}, {"tags": {"license": "CC0"}}]
)
def test_what_is_not_written_without_mutagen_is_said(given, no_mutagen):
    with pytest.warns(UserWarning, match="some tags or chapters are lost"):
        audio_io.save(io.BytesIO(), SILENCE, FS, format="wav", **given)


def test_copies_that_drop_a_text_say_so(no_mutagen):
    with pytest.warns(UserWarning, match="some tags or chapters are lost"):
        assert audio_io.kept_tags("a.mp3", {"title": "日本"}) == {}


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
