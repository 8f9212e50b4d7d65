"""Exchange between ranks: labels of collectives on the host, and kernels that communicate."""

from __future__ import annotations

from typing import Final

from torchfx.profiler.trace.meaning.kinds import CALLED, Kind, Meaning

__all__ = ["COLLECTIVE", "COMMUNICATION_CALL", "COMMUNICATION_KERNEL", "DEVICE_COLLECTIVE", "EXCHANGE", "RECORD"]

RECORD: Final = Meaning(r"record_param_comms", *CALLED)
"""The operator around each collective that says what is exchanged."""

COLLECTIVE: Final = Meaning(r"(gloo|mpi|ucc|nccl|rccl|xccl|hccl|fake|custom):", *CALLED)
"""Labels of collectives, such as "gloo:all_reduce"."""

DEVICE_COLLECTIVE: Final = Meaning(r"(nccl|rccl|xccl|hccl):", *CALLED)
"""Those of devices' libraries: on the host they are only launches."""

COMMUNICATION_CALL: Final = Meaning(r"_?c10d(_functional)?(_autograd)?::|symm_mem::|vllm::.*all_reduce", *CALLED)
"""Operators that send and receive, or wait for it."""

EXCHANGE: Final = COLLECTIVE | RECORD | COMMUNICATION_CALL

COMMUNICATION_KERNEL: Final = Meaning(
    r"(?i:.*(nccl|rccl|xccl|oneccl|ccl_|hccl|gloo|nvshmem|rocshmem|multimem|cross_device_reduce"
    r"|(one|two)_?shot_?(all_?reduce|push|pull)|quick_?(all_?)?reduce|allreduce_(prototype|twoshot|oneshot)"
    r"|all_?reduce_fusion|custom_?all_?reduce|symm_mem_(all|reduce)))",
    Kind.KERNEL,
)
"""Kernels that exchange data between ranks: of the libraries, of NVSHMEM, and of inference servers (vLLM, SGLang,
TensorRT-LLM, AITER)."""
