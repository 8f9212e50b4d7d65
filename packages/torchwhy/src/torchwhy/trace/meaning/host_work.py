"""Kinds of work that Python does for a program besides PyTorch's operators, and the fix of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from torchwhy.trace.meaning.frames import (
    COPYING_OBJECTS,
    JOINS_TO_ITSELF,
    LISTING,
    LOGGING,
    LOOKS_UP_ROWS,
    LOOPS,
    MAKES_ARRAY,
    MAKING_TENSORS,
    READING,
    SAVING,
    SEARCHES,
    TAKES_LOCK,
)
from torchwhy.trace.meaning.kinds import Kind, Meaning

__all__ = ["HOST_WORK", "HostWork"]


@dataclass(frozen=True, kw_only=True)
class HostWork:
    """A kind of work.

    Attributes:
        shows: the work in a few words, after "most samples show".
        fix: for the loop itself.
        batches: the fix where the work makes a batch; "" for the same.
        frames: the frames of it, recorded or below the program's line in a sample.
        inner: its line of source, in the innermost frame of a sample.
        line: its line of source in the program, whatever that calls.
        walks: the head of a loop whose rounds are the work, in the program's function.
        slow: whether the work is the mistake even in the loop; a batch may need it.
    """

    shows: str
    fix: str
    batches: str = ""
    frames: Meaning | None = None
    inner: Meaning | None = None
    line: Meaning | None = None
    walks: Meaning | None = None
    slow: bool = True


def _package(*names: str) -> Meaning:
    """Frames of installed packages."""
    return Meaning(rf"(.*[/\\])?({'|'.join(names)})[/\\]", Kind.PYTHON)


def _standard(*files: str) -> Meaning:
    """Frames of Python's own library; in front of a file may stand the folder of the library, nothing else."""
    return Meaning(rf"(.*[/\\]python3\.\d+[/\\])?({'|'.join(files)})", Kind.PYTHON)


def _source(pattern: str) -> Meaning:
    return Meaning(rf".*{pattern}", Kind.PYTHON)


_ONCE: Final = "once for all samples, before the loop"
_LOOK_UP: Final = (
    "A regular expression tries its alternatives one after another at each position of the text. Of a long list of "
    r"words, match any word (\w+) and look it up in a set or a dict; else"
)

HOST_WORK: Final = (
    HostWork(
        shows="a wait for a lock",
        fix="Another thread holds the lock meanwhile. Let it do its slow work without the lock: copy what it needs "
        "under the lock, and write or send it after that; or hand the data over in a queue.",
        line=TAKES_LOCK,
    ),
    HostWork(
        shows="a plot being drawn",
        fix="Draw every N steps, or keep the numbers (np.save) and draw them after the training or in another process.",
        batches=f"Draw {_ONCE}, and load the pictures as arrays.",
        frames=_package("matplotlib", "mpl_toolkits", "seaborn", "plotly"),
    ),
    HostWork(
        shows="a walk through all objects of the process",
        fix="gc.get_objects() returns every object that Python's garbage collector tracks, hundreds of thousands after "
        "the imports. Leave it out, or do it every N steps; torch.cuda.memory_stats or tracemalloc count memory "
        "without a walk.",
        inner=_source(r"\bgc\.get_(objects|referrers)\("),
        walks=_source(r"\bfor\b.*\bin\b.*\bgc\.get_(objects|referrers)\("),
    ),
    HostWork(
        shows="NumPy writing an array as text",
        fix="An array is turned into text number by number. As a key take its bytes: array.tobytes(); in a log write "
        "a mean, every N steps.",
        frames=Meaning(r"(.*[/\\])?numpy[/\\]_?core[/\\]arrayprint\.py", Kind.PYTHON),
    ),
    HostWork(
        shows="NumPy unpacking an array of an .npz file",
        fix="Take the arrays out of the file once, before the loop: arrays = dict(np.load(path)). An NpzFile reads and "
        "unpacks the whole array each time it is indexed, and keeps nothing.",
        frames=Meaning(r"(.*[/\\])?numpy[/\\]lib[/\\](npyio|_npyio_impl)\.py.*: __getitem__$", Kind.PYTHON),
    ),
    HostWork(
        shows="a checksum of bytes",
        fix="A checksum reads every byte. Take it every N steps, or at the end.",
        batches=f"Take the checksums {_ONCE}, and keep them.",
        inner=_source(
            r"\b(hashlib\.\w+\(|(md5|sha1|sha224|sha256|sha384|sha512|blake2[bs]|crc32|adler32)\(\w"
            r"|\w*(digest|hasher|hash|sha\d*|md5)\.update\()"
        ),
    ),
    HostWork(
        shows="a regular expression at work",
        fix=f"{_LOOK_UP} apply it once, before the loop.",
        batches=f"{_LOOK_UP} apply it {_ONCE}.",
        inner=_source(
            r"(\bre\.(sub|subn|findall|finditer|split|match|search|fullmatch|compile)\(|\.subn?\((r?[\"']|lambda\b)"
            r"|\b\w*(pattern|regex|_re|_rx)\.(sub|subn|findall|finditer|match|search|split|fullmatch)\("
            r"|\b[A-Z][A-Z0-9_]{2,}\.(sub|subn|findall|finditer|fullmatch)\()"
        ),
        frames=_package("regex"),
    ),
    HostWork(
        shows="numbers read from text one by one",
        fix="Read the numbers once, before the loop, and keep them as arrays.",
        batches=f"Read the numbers {_ONCE}, and keep them as arrays: the text is the same in each epoch.",
        inner=_source(
            r"(\b(int|float)\((?P<item>\w+)\) for (?P=item) in .*(split|line|text)|\bmap\((int|float),.*split)"
        ),
    ),
    HostWork(
        shows="pandas looking for rows in the whole table",
        fix="A comparison of a column reads the whole table each time. Group the rows once, before the loop: groups = "
        "{key: rows.to_numpy() for key, rows in frame.groupby(column)}; then look the group up.",
        line=_source(r"(?P<table>[A-Za-z_][\w.]*?)(\.loc)?\[(?P=table)(\[[^\]]*\]|\.\w+) *(==|!=|<|>)"),
    ),
    HostWork(
        shows="pandas taking single rows or numbers",
        fix="pandas looks up rows or numbers there: turn the columns into arrays or tensors once, before the loop "
        "(frame.to_numpy(), torch.from_numpy), and index these.",
        frames=LOOKS_UP_ROWS,
    ),
    HostWork(
        shows="an array joined to itself",
        fix="Each call copies all that was joined so far: make the whole once and fill it in place (a ring buffer), or "
        "collect the pieces in a list and join them once at the end.",
        line=JOINS_TO_ITSELF,
    ),
    HostWork(
        shows="a search tree being built",
        fix="Build the tree of the points once, before the loop, if they stay the same, and only query it there.",
        line=_source(r"\b(cKDTree|KDTree|BallTree|STRtree|rtree\.index\.Index|AnnoyIndex|IndexFlat\w*)\("),
    ),
    HostWork(
        shows="a draw with weights",
        fix="Each call reads the weights of the whole population, to check and to sum them. Keep them in a sum tree, "
        "in which a draw and a change of a weight take log2(n) steps; or make the draws of many steps in one call.",
        batches="Each call reads the weights of the whole population. Draw the numbers of a whole epoch in one call, "
        "as torch.utils.data.WeightedRandomSampler does.",
        line=_source(r"\bchoices?\(.*\b(p|weights|cum_weights)="),
    ),
    HostWork(
        shows="a permutation of the whole population",
        fix="np.random.choice(n, k, replace=False) makes a permutation of all n numbers for k of them: "
        "np.random.default_rng().choice does not where k is small, nor does random.sample(range(n), k).",
        line=_source(r"\b(np|numpy)\.random\.choice\(.*replace=False"),
    ),
    HostWork(
        shows="a video being decoded",
        fix="Decode only what is used: container.seek(time, stream=stream) goes to the key frame before the first "
        'wanted frame, and stream.thread_type = "AUTO" decodes in several threads. Of short clips that come again, '
        "keep the decoded frames.",
        line=_source(r"\bfor\b.*\bin\b.*\.(decode|demux)\("),
        frames=_package("decord", "torchcodec"),
    ),
    HostWork(
        shows="Pillow decoding or changing a whole picture",
        fix="Make the pictures once, before the loop, and keep them in the size that is used.",
        batches="Pillow decodes a picture in full, when its pixels are first used: keep the pictures in the size that "
        'the model reads, made once; or call image.draft("RGB", size) before, with which a JPEG is decoded at a half, '
        "a quarter or an eighth of its size.",
        frames=Meaning(r"(.*[/\\])?PIL[/\\]Image\.py.*: (resize|thumbnail|reduce|convert|crop)$", Kind.PYTHON),
    ),
    HostWork(
        shows="scipy.ndimage at work on a whole array",
        fix="Cut out the part that is used first, with a margin, and transform only that; order=1 (linear) reads 2 "
        "numbers for each axis and the default order=3 reads 4, after a filter over the whole array.",
        frames=Meaning(
            r"(.*[/\\])?scipy[/\\]ndimage[/\\]_?interpolation\.py.*"
            r": (rotate|zoom|shift|affine_transform|map_coordinates|geometric_transform)$",
            Kind.PYTHON,
        ),
    ),
    HostWork(
        shows="recordings being transformed by a library for audio",
        fix="Do it once, before the loop, if the same recordings come again; on batches, torchaudio's transforms run "
        "as PyTorch operators.",
        batches=f"Resample or transform the recordings {_ONCE} (what is random after that), and keep the results. What "
        "must stay in the loop runs on whole batches as PyTorch operators: torchaudio.transforms.",
        frames=_package("librosa", "soxr", "resampy", "audioread", "pyworld"),
    ),
    HostWork(
        shows="a tokenizer at work",
        fix="Tokenize all texts once, before the loop, and keep the numbers.",
        batches=f"Tokenize the texts {_ONCE}, and keep the numbers; a fast tokenizer takes a list of texts.",
        frames=Meaning(
            r"(.*[/\\])?(transformers[/\\](tokenization_|models[/\\].*[/\\]tokenization_)|tokenizers[/\\]"
            r"|sentencepiece[/\\]|tiktoken[/\\]|nltk[/\\]tokenize|spacy[/\\])",
            Kind.PYTHON,
        ),
    ),
    HostWork(
        shows="networkx at work, which is written in Python",
        fix="Compute it once for each graph, before the loop, and keep the result as an array; scipy.sparse.csgraph "
        "computes paths and components in compiled code.",
        frames=_package("networkx"),
    ),
    HostWork(
        shows="a start of other programs, or a wait for them",
        fix="Another program is started there, or waited for: start it once, before the loop, or call a library that "
        "does the same in the process; the rest every N steps, in another thread.",
        frames=_standard(r"subprocess\.py", r"multiprocessing[/\\](process|popen_\w+|context)\.py.*: (start|_launch)$"),
        inner=_source(r"\bos\.(system|popen|fork|waitpid)\("),
    ),
    HostWork(
        shows="a wait for another computer",
        fix="Data go over the network there: send them every N steps, in another thread.",
        batches="Data come over the network there: fetch them once, before the loop, or in more worker processes.",
        frames=Meaning(
            r"(.*[/\\])?(urllib3|requests|boto3|botocore|aiohttp|httpx|fsspec|s3fs|gcsfs)[/\\]"
            r"|(.*[/\\]python3\.\d+[/\\])?(http[/\\]client|ssl|socket|urllib[/\\]request)\.py",
            Kind.PYTHON,
        ),
    ),
    HostWork(
        shows="a sleep",
        fix="The program sleeps there. Wait for what it waits for, with a time limit (queue.get(timeout=...), "
        "Event.wait), which returns at once.",
        inner=_source(r"\b(time\.)?sleep\("),
    ),
    HostWork(
        shows="the first item of a list being removed or inserted",
        fix="list.pop(0) and list.insert(0, x) move all items of the list: take a collections.deque, whose popleft() "
        "and appendleft() don't.",
        inner=_source(r"\.(pop\(0\)|insert\(0,)"),
    ),
    HostWork(
        shows="torch.tensor at work on lists",
        fix="torch.tensor reads lists number by number: keep the data in NumPy arrays or tensors (torch.from_numpy, "
        "np.stack, torch.stack), converted once before the loop or in a DataLoader's workers.",
        frames=MAKING_TENSORS,
        inner=MAKING_TENSORS,
    ),
    HostWork(
        shows="an archive or a compressed file being unpacked",
        fix="Unpack it once, before the loop, into memory or a plain file.",
        batches=f"Unpack the files {_ONCE}, into memory or plain files.",
        frames=_standard(r"(gzip|bz2|lzma|tarfile|_compression)\.py", r"zipfile[/\\.]"),
        inner=_source(r"\b(zlib|gzip|bz2|lzma|lz4\.frame|zstandard|blosc2?|brotli)\.(de)?compress\("),
    ),
    HostWork(
        shows="something being saved",
        fix="Save every N steps, or in another thread or process.",
        frames=SAVING,
    ),
    HostWork(
        shows="files being read or decoded",
        fix="Read and decode once before the loop, or in a Dataset with DataLoader(num_workers=4).",
        batches="Read and decode once, and keep the result if memory allows it; read less of each file (a memory map: "
        'np.load(path, mmap_mode="r")); else num_workers=4 reads in other processes.',
        frames=READING,
        inner=_source(
            r"\b(cv2|iio|imageio|io|sf|soundfile|torchaudio|h5py)\.(imread|imdecode|read_image|decode_\w+|load)\("
        ),
    ),
    HostWork(
        shows="all numbers of a tensor becoming Python's own",
        fix="All numbers of a tensor become Python's own or text there. For a log, compute means on the whole tensor "
        "and write them every N steps; to send or store all numbers, take the bytes of the array "
        "(tensor.numpy().tobytes(), np.save).",
        frames=LISTING,
        inner=_source(r"\.tolist\(\)"),
    ),
    HostWork(
        shows="a log being written",
        fix="Log every N steps, and fewer numbers: means made on whole tensors, not all their values.",
        frames=LOGGING,
        inner=_source(r"(\bprint\(|\.flush\(\)|\bos\.fsync\()"),
    ),
    HostWork(
        shows="whole objects being copied",
        fix="copy.deepcopy copies all that an object holds, piece by piece: copy only what changes (tensor.clone(), "
        "array.copy()), or make a new object.",
        frames=COPYING_OBJECTS,
    ),
    HostWork(
        shows="a search through a list",
        fix="index() searches from the beginning in each call: make a dict of all items and their places once, before "
        "the loop, and look them up in it.",
        inner=SEARCHES,
    ),
    HostWork(
        shows="NumPy making an array of a list",
        fix="NumPy makes an array of a list or a deque there, item by item: keep the items in an array or a tensor (a "
        "ring buffer), or keep a running sum instead of computing it from all of them again.",
        inner=MAKES_ARRAY,
        slow=False,
    ),
    HostWork(
        shows="Python going through items",
        fix="Python goes through the items of that line one by one: keep a running result, or keep the items in an "
        "array or a tensor and compute with the whole of it.",
        inner=LOOPS,
        slow=False,
    ),
)
"""Kinds of work, those first whose fix says more. Facts of packages: the documentation of NumPy (`load`,
`random.choice`), SciPy (`ndimage`), Pillow (`Image.draft`), PyAV (`seek`, `thread_type`), and Python (`re`,
`collections.deque`, `gc`).
"""
