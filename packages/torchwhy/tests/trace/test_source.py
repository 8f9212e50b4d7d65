"""Bytes out of whatever holds a trace, and one clear line where it holds none."""

import gzip
import io
import json
import os
import subprocess
import sys
import threading
import time

import pytest

from torchwhy.errors import ArgumentTypeError, TorchWhyError, TraceError
from torchwhy.trace.file import source as source_module
from torchwhy.trace.file.scanning import scan
from torchwhy.trace.file.source import CHUNK, Chunks

DATA = b'{"traceEvents": [{"ph": "X", "name": "\xc3\xa9", "ts": 1}]}'


def read(source):
    with Chunks(source) as chunks:
        return b"".join(chunks), chunks


class Drops:
    """Hands out a few bytes at a time, as pipes may."""

    def __init__(self, data, size=1):
        self.file, self.size = io.BytesIO(data), size

    def read(self, size):
        return self.file.read(min(size, self.size))


@pytest.fixture
def written(tmp_path):
    def write(data, name="trace.json"):
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return write


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz", "trace"])
def test_gzip_is_recognised_by_its_content(written, pack, name):
    path = written(pack(DATA), name)
    for source in (path, str(path), io.BytesIO(pack(DATA)), Drops(pack(DATA)), Drops(pack(DATA), 70)):
        data, chunks = read(source)
        assert data == DATA
        assert not chunks.truncated_gzip


def test_chunks_stay_small(rng):
    data = DATA + b" " * (30 * CHUNK) + rng.bytes(3 * CHUNK)
    for packed in (data, gzip.compress(data, 1)):
        sizes = [len(chunk) for chunk in Chunks(io.BytesIO(packed))]
        assert sum(sizes) == len(data)
        assert max(sizes) <= 2 * CHUNK


@pytest.fixture(params=["isal", "zlib"])
def unpacker(request, monkeypatch):
    """With the fast library and without."""
    if request.param == "zlib":
        monkeypatch.setattr(source_module, "isal_zlib", None)
    elif source_module.isal_zlib is None:
        pytest.skip("isal is not installed")
    return request.param


def test_many_members_take_linear_time(unpacker):
    small = gzip.compress(b"", mtime=0)
    data, chunks = read(io.BytesIO(gzip.compress(DATA) + small * 200_000))
    assert data == DATA
    assert not chunks.truncated_gzip


def test_both_unpack_the_same(unpacker, rng):
    text = b"[" + b",".join(b'{"ph": "X", "name": "%s"}' % rng.bytes(9).hex().encode() for _ in range(100_000))
    packed = gzip.compress(text[:2_000_000]) + gzip.compress(text[2_000_000:], 1)
    file = io.BytesIO(b"ahead" + packed)
    file.seek(5)
    assert read(file)[0] == text
    for cut in (len(packed) - 4, len(packed) // 2, 5000):
        file = io.BytesIO(b"ahead" + packed[:cut])
        file.seek(5)
        found, chunks = read(file)
        assert chunks.truncated_gzip
        assert text.startswith(found)
        assert len(found) > len(text) * cut / len(packed) - 200_000
    broken = bytearray(packed)
    broken[len(packed) // 2] ^= 255
    found, chunks = read(io.BytesIO(broken))
    assert chunks.truncated_gzip
    assert text.startswith(found[: len(text) // 2 - 200_000])
    assert len(found) > len(text) // 2 - 200_000


def test_several_members_are_one_stream():
    data = b"".join(gzip.compress(bytes([byte])) for byte in DATA)
    for source in (io.BytesIO(data), Drops(data), Drops(data, 19)):
        assert read(source)[0] == DATA


@pytest.mark.parametrize("rest", [b"\0" * 100, b"\x1f", b"garbage", b"\n"])
def test_what_follows_a_member_and_is_none_is_left(rest):
    for size in (1, 1000):
        data, chunks = read(Drops(gzip.compress(DATA) + rest, size))
        assert data == DATA
        assert not chunks.truncated_gzip


def test_truncated_gzip_gives_what_is_there(rng):
    event = b'{"ph": "X", "name": "%s", "ts": 1}'
    data = b'{"traceEvents": [' + b",".join(event % rng.bytes(20).hex().encode() for _ in range(2000)) + b"]}"
    packed = gzip.compress(data)
    for length in (len(packed) - 1, len(packed) - 8, len(packed) // 2, 100):
        found, chunks = read(io.BytesIO(packed[:length]))
        assert chunks.truncated_gzip
        assert data.startswith(found)
        assert len(found) > length / 4
    columns = scan(io.BytesIO(packed[: len(packed) // 2]))
    assert columns.repairs.truncated_gzip
    assert columns.repairs.truncated
    assert 900 < len(columns) < 1100


def test_damaged_gzip_gives_what_comes_before(rng):
    data = DATA + rng.bytes(100_000).hex().encode()
    packed = bytearray(gzip.compress(data))
    packed[60_000:60_020] = bytes(20)
    found, chunks = read(io.BytesIO(packed))
    assert chunks.truncated_gzip
    assert found[:90_000] == data[:90_000]
    wrong_sum = bytearray(gzip.compress(DATA))
    wrong_sum[-5] ^= 1
    assert read(io.BytesIO(wrong_sum))[0] == DATA


def test_a_header_of_gzip_alone():
    with pytest.raises(TraceError, match="is empty"):
        read(io.BytesIO(gzip.compress(DATA)[:10]))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_is_decoded(encoding):
    mark = b"" if encoding == "utf-16" else "\ufeff".encode(encoding)
    packed = mark + DATA.decode().encode(encoding)
    for source in (io.BytesIO(packed), Drops(packed, 3)):
        assert read(source)[0] == DATA


@pytest.mark.parametrize("between", ["\n", "\r\n", "\n\n"])
@pytest.mark.parametrize("end", ["", "\n"])
def test_lines_of_json_are_a_list_of_events(between, end, monkeypatch):
    monkeypatch.setattr(source_module, "CHUNK", 150)
    events = [{"ph": "X", "cat": "cpu_op", "name": f"mul {i}", "ts": i, "dur": 1, "pid": 1, "tid": 1} for i in range(9)]
    found = scan(io.BytesIO((between.join(map(json.dumps, events)) + end).encode()))
    assert (len(found), found.repairs.stray_commas, found.repairs.damaged_events) == (9, 0, 0)


def test_a_trace_on_one_line_is_looked_at_once():
    events = json.dumps([{"ph": "X", "name": f"mul {i}", "ts": i} for i in range(CHUNK // 32)]).encode()
    begun = time.process_time()
    assert read(io.BytesIO(events[1:]))[0] == events[1:]
    assert time.process_time() - begun < 0.5  # in square time: tens of seconds


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_that_nobody_writes_to_does_not_wait_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(source_module, "PATIENCE_S", 0.1)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TraceError, match="is a pipe, and nothing was written to it"):
        read(tmp_path / "pipe")
    monkeypatch.setattr(source_module, "PATIENCE_S", 60.0)
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(DATA,))
    writer.start()
    assert read(tmp_path / "pipe")[0] == DATA
    writer.join()


def test_a_byte_order_mark_of_utf8_is_no_obstacle():
    assert scan(io.BytesIO(b"\xef\xbb\xbf" + DATA)).texts == scan(io.BytesIO(DATA)).texts


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"\x89PNG\r\n\x1a\n....", "a PNG image"),
        (b"<!DOCTYPE html><html>", "an HTML page"),
        (b"\n  <HTML>", "an HTML page"),
        (b"PK\x03\x04....", "a zip archive"),
        (b"\x80\x04\x95", "a pickle"),
        (b"\x0a\x10\x08\x01\x12\x0a", "a protobuf trace"),
        (b"\x28\xb5\x2f\xfd", "zstd data: unpack it"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS"),
        (b"RIFF....WAVE", "a RIFF file"),
        (b"hello", "begins with 'hello'"),
        (b'"a"', "begins with"),
    ],
)
def test_other_files_are_named(written, data, what):
    for stored in (data, gzip.compress(data)):
        path = written(stored)
        with pytest.raises(TraceError) as raised:
            scan(path)
        message = str(raised.value)
        assert message.startswith(f"{path} is not a trace: ")
        assert what in message
        assert "\n" not in message


def test_files_that_cannot_be_opened(tmp_path, written):
    with pytest.raises(TraceError, match=r"missing\.json does not exist"):
        Chunks(tmp_path / "missing.json")
    with pytest.raises(TraceError, match="is a folder"):
        Chunks(tmp_path)
    with pytest.raises(TraceError, match="is empty"):
        read(written(b""))
    with pytest.raises(TraceError, match="cannot be opened"):
        Chunks("a\0b")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_not_permitted(written):
    path = written(DATA)
    path.chmod(0)
    with pytest.raises(TraceError, match="permission denied"):
        Chunks(path)


def test_errors_of_the_file_are_of_one_family(written):
    assert issubclass(TraceError, TorchWhyError)
    assert issubclass(TraceError, OSError)

    class Broken:
        def read(self, size):
            raise OSError(5, "Input/output error")

    with pytest.raises(TraceError, match="the open file cannot be read: Input/output error"):
        read(Broken())


def test_sources_of_the_wrong_type(written):
    with pytest.raises(ArgumentTypeError, match="got int"):
        Chunks(5)
    with pytest.raises(ArgumentTypeError, match="binary mode"):
        read(io.StringIO(DATA.decode()))
    path = written(b"\xff\xfe\xfd")
    with path.open(encoding="utf-8") as file, pytest.raises(ArgumentTypeError, match="binary mode"):
        read(file)


def test_an_open_file_stays_open(written):
    with written(DATA).open("rb") as file:
        assert len(scan(file)) == 1
        assert not file.closed


def test_standard_input():
    code = "from torchwhy.trace.file.scanning import scan; print(len(scan('-')))"
    for data in (DATA, gzip.compress(DATA)):
        ran = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, check=True)
        assert ran.stdout.split() == [b"1"]


def test_reading_needs_no_torch():
    code = "import sys, torchwhy.trace.file.scanning; print('torch' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert ran.stdout.split() == [b"False"]


def test_the_scanner_in_python_is_used_where_the_native_one_is_switched_off(written):
    code = (
        "import sys; from torchwhy.trace.file import scan_native;"
        "from torchwhy.trace.file.scanning import scan;"
        "print(scan_native.available(), len(scan(sys.argv[1])))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(written(DATA))],
        capture_output=True,
        check=True,
        env={**os.environ, "TORCHWHY_NATIVE": "0"},
    )
    assert ran.stdout.split() == [b"False", b"1"]
