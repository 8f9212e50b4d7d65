"""Calls of the device's driver and runtime library: CUDA, HIP, MUSA, Level Zero, SYCL."""

from __future__ import annotations

from typing import Final

from torchwhy.trace.meaning.kinds import Kind, Meaning

__all__ = [
    "ALLOCATION",
    "ALLOCATOR_CALL",
    "ANY_CALL",
    "BLOCKING_COPY",
    "BLOCKING_FILL",
    "CAPTURE_BEGIN",
    "CAPTURE_END",
    "COOPERATIVE_LAUNCH",
    "COPY_CALL",
    "DEVICE_FREE",
    "DEVICE_SYNCHRONIZE",
    "EVENT_SYNCHRONIZE",
    "FILL_CALL",
    "GRAPH_INSTANTIATE",
    "GRAPH_LAUNCH",
    "LAUNCH",
    "LAUNCH_OR_ENQUEUE",
    "MEMORY_CALL",
    "MODULE_LOADING",
    "NO_WORK",
    "OCCUPANCY_QUERY",
    "QUERY",
    "STREAM_SYNCHRONIZE",
    "STREAM_WAIT",
    "SYNCHRONIZE",
    "WAIT_FOR_DEVICE",
]

_R: Final = Kind.RUNTIME

GRAPH_LAUNCH: Final = Meaning(r"(?i:.*graphlaunch)", _R)
"""Launches of a whole CUDA or HIP graph."""

LAUNCH: Final = Meaning(r"(?i:.*(launch.*kernel|kernel.*launch|graphlaunch)|.*LaunchKernel|hipLaunchByPtr|launch$)", _R)
"""Calls that put kernels on a device: cudaLaunchKernel(ExC), cuLaunchKernelEx, hipModuleLaunchKernel,
hipExtModuleLaunchKernel, urEnqueueKernelLaunch, cudaGraphLaunch, launch (of other makers), ..."""

COOPERATIVE_LAUNCH: Final = Meaning(r"(?i:(cuda|hip|cu)\w*LaunchCooperative)", _R)
"""All blocks of the kernel run at the same time, so that they can wait for something."""

LAUNCH_OR_ENQUEUE: Final = Meaning(r"(?i:.*(launch|enqueue))", _R)
"""Whatever starts work of any kind on a device."""

CAPTURE_BEGIN: Final = Meaning(r"(cuda|cu|hip)StreamBeginCapture", _R)
CAPTURE_END: Final = Meaning(r"(cuda|cu|hip)StreamEndCapture", _R)
GRAPH_INSTANTIATE: Final = Meaning(r"(cuda|cu|hip)GraphInstantiate", _R)

SYNCHRONIZE: Final = Meaning(r"(?i:(cuda|hip|cu|mu|musa|ze|ur|xpu)\w*synchronize|urQueueFinish|urEventWait)", _R)
"""Calls that do nothing but wait for a device: cudaStreamSynchronize, hipDeviceSynchronize, urEventWait, ..."""

DEVICE_SYNCHRONIZE: Final = Meaning(r"(cuda|hip)(Device|Ctx)Synchronize|cuCtxSynchronize", _R)
STREAM_SYNCHRONIZE: Final = Meaning(r"(cuda|hip|cu)StreamSynchronize", _R)

EVENT_SYNCHRONIZE: Final = Meaning(r"(?i:(cuda|hip|cu|mu|musa|ze|ur|xpu)\w*event\w*synchronize|urEventWait)", _R)
"""The same for an event of a stream."""

BLOCKING_COPY: Final = Meaning(
    r"(cuda|hip)Memcpy(WithStream|2D|3D|ToSymbol|FromSymbol|Peer|HtoD|DtoH|DtoD)?(_v\d+|_ptds)?$"
    r"|cuMemcpy(HtoD|DtoH|DtoD)?(_v\d+|_ptds)?$",
    _R,
)
"""Copies that return when the device has finished: cudaMemcpy, hipMemcpyWithStream, ..."""

BLOCKING_FILL: Final = Meaning(r"(cuda|hip)Memset(2D|3D|D8|D16|D32)?$|cuMemset(D8|D16|D32)(_v2)?$", _R)

WAIT_FOR_DEVICE: Final = SYNCHRONIZE | BLOCKING_COPY
"""Every call in which the host waits for a device. `derived/waits` adds copies that turned out to block."""

STREAM_WAIT: Final = Meaning(r"(cuda|hip|cu)StreamWaitEvent", _R)
"""A stream has to wait for another; the host continues."""

MEMORY_CALL: Final = Meaning(
    r"(cuda|hip)(Malloc|Free|HostAlloc|HostMalloc|HostFree|HostRegister)|cuMem(Alloc|Free|Create|Map|Unmap|Release"
    r"|SetAccess)",
    _R,
)
"""Allocations and releases of device memory and of pinned host memory."""

ALLOCATION: Final = Meaning(r"(?i:(cuda|hip)(Malloc|HostAlloc))", _R)
"""Memory is taken, of the device or pinned."""

ALLOCATOR_CALL: Final = Meaning(r"(cuda|hip)(Malloc|Free)$|cuMem(Create|Map|Unmap|Release|SetAccess)$", _R)
"""The calls of PyTorch's caching allocator if its cache has no fitting block."""

DEVICE_FREE: Final = Meaning(r"(cuda|hip)Free$", _R)

COPY_CALL: Final = Meaning(r"(?i:.*memcpy)", _R)
FILL_CALL: Final = Meaning(r"(?i:.*memset)", _R)

MODULE_LOADING: Final = Meaning(r"cu(Module|Library)Load|hipModuleLoad|cudaLibraryLoad", _R)
"""Code is loaded onto the device: the first call of a kernel, where loading is lazy."""

OCCUPANCY_QUERY: Final = Meaning(r"(cuda|hip|cu)(Module)?Occupancy", _R)
"""How many blocks of a kernel fit on a multiprocessor: asked by kernels that adapt their launch."""

QUERY: Final = Meaning(
    r"(?i:(cuda|hip|cu)(FuncSetAttribute|FuncGetAttributes?|Occupancy\w*|GetDeviceProperties\w*|DeviceGetAttribute"
    r"|PointerGetAttributes?|EventQuery|StreamQuery|DriverGetVersion|RuntimeGetVersion|PeekAtLastError"
    r"|StreamIsCapturing|StreamGetCaptureInfo\w*|StreamGetPriority|DeviceGetStreamPriorityRange|GetLastError))",
    _R,
)
"""Questions to the driver that put nothing on the device."""

NO_WORK: Final = Meaning(
    r"(cuda|hip|cu)((Device|Ctx|Stream|Event)(Synchronize|Query|Get|Destroy)|Get|Peek|Occupancy)", _R
)
"""Calls after which a program need not go on: they wait or ask."""

ANY_CALL: Final = Meaning(r"(cuda|cu|hip)[A-Z]", _R)
"""Calls of CUDA's or HIP's libraries."""
