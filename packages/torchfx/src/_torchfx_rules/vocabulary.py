"""torchfx's operators, and what audio programs do besides: reading files, designing filters."""

from __future__ import annotations

from typing import Final

from torchwhy.trace.meaning.kinds import Kind, Meaning
from torchwhy.trace.meaning.vocabulary import Vocabulary

__all__ = [
    "DECODE_AUDIO",
    "DESIGN_AGAIN",
    "DESIGN_FILTER",
    "FILTER",
    "LEARNED_FILTER",
    "LIGHT",
    "PIPE_AGAIN",
    "READ_AUDIO_FRAME",
    "TORCHFX",
]

_O: Final = Kind.OPERATOR

TORCHFX: Final = Vocabulary(
    library="torchfx",
    operators="torchfx_ext",
    folder="torchfx",
    kernels=((r"biquad|sos_|(?<![a-z])iir|(?<![a-z])fir_", "audio"),),
    operations={"audio": "filter of torchfx"},
    in_a_loop="Join the filters into one chain (a | b | c) before applying it: a fused chain is one native call.",
)

FILTER: Final = Meaning(
    r"torchfx_ext::(sos|biquad|fir|lti)_forward(_recording)?$|torchfx_ext::parallel_iir_forward", _O
)
"""A signal goes through a filter."""

PIPE_AGAIN: Final = Meaning(r"torchfx pipe again$", _O)
"""A module gets the samples that the module before it made, as in `wave | a | b`."""

LEARNED_FILTER: Final = Meaning(r"torchfx_ext::\w+_backward", _O)

LIGHT: Final = Meaning(
    r"aten::(to|_to_copy|copy_|lift_fresh|detach|alias|view|reshape|_unsafe_view|unsqueeze|squeeze|expand|as_strided"
    r"|select|slice|narrow|transpose|t|contiguous|mul|mul_|empty.*|new_empty.*|resolve_.*|set_.*|result_type)$|detach$",
    _O,
)
"""Operators that change nothing about what follows what: views, and gains, which join a cascade too."""

DESIGN_FILTER: Final = Meaning(r"torchfx_ext::\w+_(sos|taps)$|torchfx design$", _O)
"""Coefficients are computed: by operators in compiled code, by Python functions otherwise."""

DESIGN_AGAIN: Final = Meaning(r"torchfx design again$", _O)
"""An earlier design gave the same coefficients as the design around it."""

DECODE_AUDIO: Final = Meaning(r"(torchaudio|torchcodec|torchcodec_ns)::.*(load|decode|get_frames)", _O)
READ_AUDIO_FRAME: Final = Meaning(
    r"(.*/)?(torchfx/audio_io/\w+\.py\(\d+\): (load|read\w*)$|soundfile\.py\(\d+\): (read|blocks)"
    r"|torchaudio/.*: load|librosa/core/audio\.py\(\d+\): load|torchcodec/.*: (get_all_samples|get_samples\w*)"
    r"|scipy/io/wavfile\.py\(\d+\): read|pydub/.*: from_file|audioread/.*: audio_open)",
    Kind.PYTHON,
)
"""An audio file is read and decoded."""
