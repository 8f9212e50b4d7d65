"""Files of other recorders, translated into the text of a trace: what follows reads them as it reads PyTorch's."""

from typing import Final

__all__ = ["ROCPROFILER_KEY"]

ROCPROFILER_KEY: Final = b'"rocprofiler-sdk-tool"'
"""The first key of rocprofv3's JSON, by which it differs from a trace."""
