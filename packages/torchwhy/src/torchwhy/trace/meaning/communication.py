"""Exchange between ranks: labels of collectives on the host, kernels that communicate, and who asks for it."""

from __future__ import annotations

from typing import Final

from torchwhy.trace.meaning.kinds import CALLED, Kind, Meaning

__all__ = [
    "COLLECTIVE",
    "COMMUNICATION_CALL",
    "COMMUNICATION_KERNEL",
    "DATA_PARALLEL",
    "DEFAULT_KERNEL",
    "DEVICE_COLLECTIVE",
    "DISTRIBUTED_DATA_PARALLEL",
    "EXCHANGE",
    "FIND_TENSORS",
    "FULLY_SHARDED",
    "FULLY_SHARDED_HOOKS",
    "HOST_COLLECTIVE",
    "PERHAPS_COMMUNICATION",
    "PERHAPS_WITHIN_A_CALL",
    "RECORD",
    "SEARCH_UNUSED",
    "WHOLE_FORWARD",
    "WRAPPER",
    "collective_name",
    "library_of",
]

RECORD: Final = Meaning(r"record_param_comms", *CALLED)
"""The operator around each collective that says what is exchanged."""

COLLECTIVE: Final = Meaning(r"(gloo|mpi|ucc|nccl|rccl|xccl|hccl|fake|custom):", *CALLED)
"""Labels of collectives, such as "gloo:all_reduce"."""

DEVICE_COLLECTIVE: Final = Meaning(r"(nccl|rccl|xccl|hccl):", *CALLED)
"""Collectives of devices' libraries: on the host they are only launches."""

HOST_COLLECTIVE: Final = Meaning(r"(gloo|mpi):", *CALLED)
"""Collectives of libraries that go through the host's memory."""

COMMUNICATION_CALL: Final = Meaning(
    r"_?c10d(_functional)?(_autograd)?::|symm_mem::"
    r"|(?!fsdp::)\w+::\w*?(all_?reduce|all_?gather|reduce_?scatter|all_?to_?all)",
    *CALLED,
)
"""Operators that send and receive, or wait for it."""

EXCHANGE: Final = COLLECTIVE | RECORD | COMMUNICATION_CALL

# The identifier of a C++ function up to its templates' values and arguments.
_IDENTIFIER: Final = r"(?:void )?(?:\(anonymous namespace\)::|[\w:~])*?"
_LOCAL: Final = (
    r"(?!.*?(gemm|matmul|grouped_mm|attn|attention|flash(?!infer)|mla_|softmax|norm_kernel|norm_dispatch|radix|permut))"
    r"(?!triton_(poi|red|per|tem|for|mm|split_scan)_|_ZN(2at|3cub|6thrust|7rocprim|7cutlass))"
    r"(?!(void )?(at|c10|cub|thrust|rocprim|hipcub|cutlass|cute)::)"
)
"""Words and namespaces of kernels that compute, or move data within one device."""

COMMUNICATION_KERNEL: Final = Meaning(
    r"(?i:.*(nccl|rccl|xccl|oneccl|(?<![a-z])ccl_|hccl|msccl|(?<![a-z])(uccl|gloo)|nvshmem|rocshmem|multimem"
    r"|userbuffers_|cross_device_(reduce|store)|(one|two)_?shot_?(all_?reduce|push|pull)|quick_?(all_?)?reduce::"
    r"|allreduce_(prototype|twoshot|oneshot)|all_?reduce_fusion|custom_?all_?reduce|symm_mem_(all|reduce)"
    r"|(?<![a-z])(intra|inter)node(_ll)?::(?!get_dispatch_layout)|hybrid_ep::(dispatch|combine|device_sync)"
    r"|moea2a\w*(dispatch|combine)|moe_?comm_?kernel|(?<![a-z])ep(dispatch|combine)(intra|inter|low))"
    rf"|{_LOCAL}{_IDENTIFIER}(?<!block)(?<!block_)(?<!warp)(?<!warp_)(?<!cluster)(?<!cluster_)(?<!group)(?<!group_)"
    r"(all_?reduce|all_?gather|reduce_?scatter|all_?(to|2)_?all))",
    Kind.KERNEL,
)
"""Kernels that exchange data between ranks, as their names alone show.

NCCL, RCCL (with MSCCL), MSCCL++, UCCL, oneCCL, HCCL; NVSHMEM and rocSHMEM; PyTorch's symmetric memory
(`multimem_...`, `one_shot_...`); Transformer Engine (`userbuffers_...`); vLLM and SGLang
(`cross_device_reduce_1stage`, `quickreduce::`), TensorRT-LLM and FlashInfer (`oneShotAllReduceKernel`,
`allreduce_fusion_kernel_...`, `moeA2ADispatchKernel`), AITER (`reduce_scatter_cross_device_store`); the exchange of
experts by DeepEP (`deep_ep::intranode::dispatch`) and MORI (`EpDispatchIntraNodeKernel`); and any function whose own
name, without its templates' values, says that it gathers from, reduces over or sends to all."""

PERHAPS_COMMUNICATION: Final = Meaning(
    rf"(?i:{_LOCAL}{_IDENTIFIER}(dispatch(?!_layout)|combine|notify|a2a|send_?recv))", Kind.KERNEL
)
"""Names of kernels that exchange data, and of others that compute: an expert's tokens are dispatched to another rank,
and parts of a sum are combined within one. What such a kernel does decides."""

PERHAPS_WITHIN_A_CALL: Final = Meaning(
    rf"(?i:{_LOCAL}{_IDENTIFIER}(gather|scatter|broadcast|reduce|barrier|peer|p2p|send|recv))", Kind.KERNEL
)
"""Names that mean an exchange only where an operator that exchanges data launches the kernel."""

DEFAULT_KERNEL: Final = Meaning(r"ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", Kind.KERNEL)
"""NCCL before 2.19 runs everything without a special kernel in this one, so its name says nothing."""

DISTRIBUTED_DATA_PARALLEL: Final = Meaning(r"DistributedDataParallel\.forward", *CALLED)
FULLY_SHARDED: Final = Meaning(r"FullyShardedDataParallel|FSDP::", *CALLED)
"""FSDP of either generation."""

FULLY_SHARDED_HOOKS: Final = Meaning(r"FSDP::(pre|post)_(forward|backward)", *CALLED)
"""Labels that only FSDP's second generation (fully_shard) has."""

WRAPPER: Final = DISTRIBUTED_DATA_PARALLEL | FULLY_SHARDED
WHOLE_FORWARD: Final = Meaning(r"(DistributedDataParallel|FullyShardedDataParallel)\.forward", *CALLED)
"""The forward pass of a wrapped model; the wrapper's own exchanges lie outside of it or under labels within it."""

DATA_PARALLEL: Final = Meaning(r"DataParallel\.forward", *CALLED)
SEARCH_UNUSED: Final = Meaning(
    r"(torch\.distributed\.ddp\.reducer|torch::distributed::reducer)::search_unused_parameters", *CALLED
)
FIND_TENSORS: Final = Meaning(r".*distributed\.py\(\d+\): _find_tensors", Kind.PYTHON)
"""DDP looks through a forward pass's outputs, for its search for unused parameters."""

_LIBRARIES: Final = (
    ("mscclpp", "MSCCL++"),
    ("rccl", "RCCL"),
    ("msccl", "RCCL"),
    ("nccl", "NCCL"),
    ("xccl", "oneCCL"),
    ("oneccl", "oneCCL"),
    ("hccl", "HCCL"),
    ("nvshmem", "NVSHMEM"),
    ("rocshmem", "rocSHMEM"),
    ("deep_ep", "DeepEP"),
    ("hybrid_ep", "DeepEP"),
    ("pplx", "pplx-kernels"),
    ("mori::", "MORI"),
    ("multimem", "symmetric memory"),
    ("symm_mem", "symmetric memory"),
    ("gloo:", "Gloo"),
    ("mpi:", "MPI"),
    ("userbuffers", "Transformer Engine"),
    ("vllm::", "vLLM"),
    ("sglang", "SGLang"),
    ("flashinfer", "FlashInfer"),
    ("tensorrt_llm", "TensorRT-LLM"),
    ("aiter", "AITER"),
)

# Collectives by what is found first in a name, without underscores and in lower case.
_NAMES: Final = (
    ("reducescatter", "reduce_scatter"),
    ("rrrs", "reduce_scatter"),
    ("allreduce", "all_reduce"),
    ("crossdevicereduce", "all_reduce"),
    ("quickreduce", "all_reduce"),
    ("oneshotreduce", "all_reduce"),
    ("rwag", "all_gather"),
    ("fp16sum", "all_reduce"),
    ("allgather", "all_gather"),
    ("alltoall", "all_to_all"),
    ("all2all", "all_to_all"),
    ("moea2a", "all_to_all"),
    ("dispatch", "all_to_all"),
    ("combine", "all_to_all"),
    ("notify", "all_to_all"),
    ("a2a", "all_to_all"),
    ("barrier", "barrier"),
    ("broadcast", "broadcast"),
    ("sendrecv", "send_recv"),
    ("gather", "gather"),
    ("scatter", "scatter"),
    ("reduce", "reduce"),
    ("send", "send"),
    ("recv", "recv"),
)


def collective_name(name: str) -> str:
    """The one name of a collective, of whatever kernel, annotation or argument it is called by.

    >>> collective_name("ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)"), collective_name("_allgather_base")
    ('all_reduce', 'all_gather')
    >>> collective_name("void vllm::cross_device_reduce_1stage<half, 2>()"), collective_name("broken")
    ('all_reduce', '')
    """
    plain = name.lower().replace("_", "").replace("-", "")
    return next((found for part, found in _NAMES if part in plain), "")


def library_of(name: str) -> str:
    """The library of a communicating kernel or of a collective's label; "" where the name doesn't show it.

    >>> library_of("ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)"), library_of("gloo:all_reduce"), library_of("x")
    ('NCCL', 'Gloo', '')
    """
    plain = name.lower()
    return next((label for part, label in _LIBRARIES if part in plain), "")
