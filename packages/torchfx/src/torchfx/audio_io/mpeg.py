"""Frames of MPEG audio: how many a file holds, and the frame in front that names their number.

Sources: ISO/IEC 11172-3, 2.4.2.3, and 13818-3 (headers of frames); Xing's VBR header; LAME's tag, revision 0
(http://gabriel.mp3-tech.org/mp3infotag.html); ID3v2.4, 3.1 (size of a tag).
"""

from __future__ import annotations

import io
import os
import struct
from functools import lru_cache
from typing import Any, NamedTuple

__all__ = ["Frames", "Spliced", "completed", "counted", "replaced"]

# kbit/s by MPEG-1 or not and layer, from index 1 on.
KBPS = {
    (True, 1): (32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448),
    (True, 2): (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (True, 3): (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (False, 1): (32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
    (False, 2): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (False, 3): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
VBRI = 36  # bytes in front of Fraunhofer's header
SEARCHED = 1 << 16  # bytes, in which the first frame begins
ENDS = (b"TAG", b"APET", b"LYRI")  # tags behind the last frame
ENCODER_DELAY = 576  # samples, LAME's
DECODER_DELAY = 529  # samples, of each decoder of layer III
HEADER_BYTES = 156  # Xing's header with all its fields, and LAME's behind it
LEAST_BYTES = 24  # of a frame


class Header(NamedTuple):
    """The first four bytes of a frame.

    Attributes:
        kind: equal for all frames of a file.
        layer: 1, 2 or 3.
        bytes: length of the frame.
        samples: samples per channel.
        side: bytes of side information after the header, in layer III.
    """

    kind: tuple[int, int, bool]
    layer: int
    bytes: int
    samples: int
    side: int


class Frames(NamedTuple):
    """The frames of a file that does not name their number.

    Attributes:
        first: the four bytes of a frame's header.
        layer: 1, 2 or 3.
        samples: samples per channel of a frame.
        start: position of the first frame, bytes.
        music: position of the first frame with samples; before it a header without a number.
        number: frames with samples, at least.
        most: frames with samples, at most; more than `number` in a damaged file.
        size: bytes of the file.
    """

    first: bytes
    layer: int
    samples: int
    start: int
    music: int
    number: int
    most: int
    size: int


@lru_cache(1024)
def _header(word: bytes) -> Header | None:
    if len(word) < 4 or word[0] != 0xFF or word[1] < 0xE0:
        return None
    version, layer, index, rate = word[1] >> 3 & 3, 4 - (word[1] >> 1 & 3), word[2] >> 4, word[2] >> 2 & 3
    if version == 1 or layer == 4 or index in {0, 15} or rate == 3:  # 0: a length that the header does not name
        return None
    first, mono = version == 3, word[3] >> 6 == 3
    fs = (44_100, 48_000, 32_000)[rate] >> {3: 0, 2: 1, 0: 2}[version]
    samples = 384 if layer == 1 else 576 if layer == 3 and not first else 1152
    slot = 4 if layer == 1 else 1
    size = (samples // 8 * 1000 * KBPS[first, layer][index - 1] // slot // fs + (word[2] >> 1 & 1)) * slot
    side = {(True, False): 32, (True, True): 17, (False, False): 17, (False, True): 9}[first, mono]
    return Header((word[1] & 0xFE, word[2] & 0x0C, mono), layer, size, samples, side)


def counted(file: Any) -> Frames | None:
    """Return the frames of an MPEG audio file without a header that names their number, or None.

    Args:
        file: a binary file object at its start.
    """
    size: int = file.seek(0, os.SEEK_END)
    start = _first_frame(file, size)
    if start is None:
        return None
    file.seek(start)
    word = file.read(4)
    header = _header(word)
    assert header is not None
    file.seek(start)
    frame = file.read(header.bytes)
    names, number = _named(frame, header)
    if number:
        return None
    music = at = start + header.bytes if names else start
    frames, following = 0, b""
    while at + 4 <= size:
        file.seek(at)
        following = file.read(4)
        found = _header(following)
        if found is None or found.kind != header.kind or at + found.bytes > size:
            break
        frames, at, following = frames + 1, at + found.bytes, b""
    found = _header(following)
    whole = not following or following.startswith(ENDS) or (found is not None and found.kind == header.kind)
    most = frames if whole else frames + (size - at) // LEAST_BYTES
    return Frames(word, header.layer, header.samples, start, music, frames, most, size)


def _first_frame(file: Any, size: int) -> int | None:
    """Return the position of the first frame that another follows; in front of it are ID3 tags."""
    start = 0
    while True:
        file.seek(start)
        tag: bytes = file.read(10)
        if len(tag) < 10 or not tag.startswith(b"ID3"):
            break
        length = sum((byte & 0x7F) << shift for byte, shift in zip(tag[6:], (21, 14, 7, 0), strict=True))
        start += 10 + length + (10 if tag[5] & 0x10 else 0)
    file.seek(start)
    data: bytes = file.read(SEARCHED)
    at = data.find(b"\xff")
    while at >= 0:
        header = _header(data[at : at + 4])
        if header is not None:
            after = _header(data[at + header.bytes : at + header.bytes + 4])
            if start + at + header.bytes >= size or (after is not None and after.kind == header.kind):
                return start + at
        at = data.find(b"\xff", at + 1)
    return None


def _named(frame: bytes, header: Header) -> tuple[bool, int]:
    """Return whether a frame is a header of a file, and the number of frames that libmpg123 reads from it, or 0."""
    if header.layer != 3:
        return False, 0
    name, flags, number = struct.unpack_from(">4sII", frame.ljust(VBRI + 12, b"\0"), 4 + header.side)
    if name in {b"Xing", b"Info"}:
        return True, number if flags & 1 else 0
    return frame[VBRI : VBRI + 4] == b"VBRI", 0


def replaced(found: Frames, number: int) -> tuple[int, int, bytes]:
    """Return what `Spliced` replaces for libmpg123 to decode all samples of a file: start, end, bytes.

    In layer III they are a header and a silent frame, which is left out: libmpg123 leaves out its delay at the start of
    each file whose header names the number of frames. The other layers have no such header.

    Args:
        found: the frames of the file.
        number: how many they are.
    """
    if found.layer != 3:
        return 0, 0, b""
    silence = _silent_frame(found.first, 0)
    music = found.size - found.music + len(silence)
    header = _file_header(found.first, number + 1, music, b"-", found.samples - DECODER_DELAY, DECODER_DELAY)
    return found.start, found.music, header + silence


def completed(mp3: bytes, frames: int) -> bytes:
    """Return an MP3 that LAME wrote, with the header for which LAME has no room at low bit rates.

    Args:
        mp3: the file.
        frames: samples per channel that it was given.
    """
    found = counted(io.BytesIO(mp3))
    padding = -1 if found is None else found.number * found.samples - ENCODER_DELAY - frames
    if found is None or padding < 0:  # there are fewer frames than written: the disk is full
        return mp3
    head = _file_header(found.first, found.number, found.size - found.music, b"LAME", ENCODER_DELAY, padding)
    return mp3[: found.start] + head + mp3[found.start :]


def _silent_frame(first: bytes, least: int) -> bytes:
    """Return the shortest silent frame like another, with room for some bytes after its side information."""
    for index in range(1, 15):
        word = bytes([0xFF, first[1] | 1, index << 4 | first[2] & 0x0C, first[3] & 0xC0])
        header = _header(word)
        assert header is not None
        if header.bytes >= 4 + header.side + least:
            break
    assert header is not None
    return word.ljust(header.bytes, b"\0")


def _file_header(first: bytes, number: int, music: int, encoder: bytes, delay: int, padding: int) -> bytes:
    """Return the frame of Xing and LAME.

    Args:
        first: header of a frame like it.
        number: how many frames follow.
        music: how many bytes follow.
        encoder: its name.
        delay, padding: samples that the encoder has put in front and behind.
    """
    frame = bytearray(_silent_frame(first, HEADER_BYTES))
    header = _header(first)
    assert header is not None
    kbps = KBPS[first[1] >> 3 & 3 == 3, 3][(first[2] >> 4) - 1]
    xing = struct.pack(">4sIII", b"Info", 15, number, music + len(frame))
    xing += bytes(i * 256 // 100 for i in range(100)) + bytes(4)  # times of a constant bit rate
    lame = encoder.ljust(9) + b"\1" + bytes(10) + bytes([min(kbps, 255)])
    lame += (delay << 12 | padding).to_bytes(3, "big") + bytes(4) + (music + len(frame)).to_bytes(4, "big") + bytes(2)
    at = 4 + header.side
    end = at + HEADER_BYTES - 2
    frame[at:end] = xing + lame
    frame[end : end + 2] = _crc16(frame[:end]).to_bytes(2, "big")
    return bytes(frame)


def _crc16(data: bytes | bytearray) -> int:
    """Return the CRC-16 of LAME's tag (polynomial 0x8005, reflected)."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xA001 if crc & 1 else 0)
    return crc


class Spliced:
    """A binary file object with other bytes in it.

    Args:
        file: the file object; its position changes.
        start, end: the bytes that are replaced.
        inserted: by what.
    """

    def __init__(self, file: Any, start: int, end: int, inserted: bytes) -> None:
        """Start at the beginning."""
        self._file, self._start, self._end, self._inserted = file, start, end, inserted
        self._behind = start + len(inserted)
        self._size = file.seek(0, os.SEEK_END) + self._behind - end
        self._position = 0

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a position; return it."""
        origin = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = max(0, origin + offset)
        return self._position

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def read(self, size: int) -> bytes:
        """Return as many bytes as requested unless the file ends."""
        data = b""
        if self._position < self._start:
            self._file.seek(self._position)
            data = self._file.read(min(size, self._start - self._position))
        if self._start <= self._position + len(data) < self._behind:
            at = self._position + len(data) - self._start
            data += self._inserted[at : at + size - len(data)]
        if len(data) < size:
            self._file.seek(self._position + len(data) - self._behind + self._end)
            data += self._file.read(size - len(data))
        self._position += len(data)
        return data
