"""Runs out of the memory of a stand-in for a GPU, whose allocator calls observers before it raises; caught N times."""

import sys
from contextlib import suppress
from pathlib import Path

import torch


def allocate():
    for observer in observers:
        observer(0, 2 * 10**9, 80 * 10**9, 10**6)
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GB.")


observers = []
caught = int(sys.argv[1])
frames = [{"filename": "/home/me/train.py", "line": 3, "name": "grow"}]
block = {"address": 4096, "size": 1024, "requested_size": 1000, "state": "active_allocated", "frames": frames}
segment = {"device": 0, "address": 4096, "total_size": 1024, "segment_type": "large", "stream": 0, "blocks": [block]}
recorded = {}
torch._C._cuda_attach_out_of_memory_observer = observers.append
torch.cuda.memory._record_memory_history = lambda *args, **kwargs: recorded.update(kwargs)
torch.cuda.memory._snapshot = lambda *args, **kwargs: {"segments": [segment], "device_traces": [[]]}
if "broken" in sys.argv:
    torch.cuda.memory._snapshot = lambda *args, **kwargs: Path("/missing/file").read_bytes()
for call, _ in torch.cuda._queued_calls:  # as torch.cuda does when it is first used
    call()
print(sorted(recorded))
for i in range(caught):
    with suppress(torch.OutOfMemoryError):
        allocate()
    print("caught", i)
if caught < 2:
    allocate()
