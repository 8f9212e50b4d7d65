"""Snapshots as `torch.cuda.memory._dump_snapshot` writes them, made by hand."""

import pickle


class Allocator:
    """Records what a caching allocator would: one segment, addresses one after the other, sizes rounded to 512."""

    def __init__(self, segment=1 << 20, device=0, history=True):
        self.segment, self.device, self.history = segment, device, history
        self.events, self.blocks = [], {}
        self.next, self.time = 0x7F0000000000, 1_700_000_000_000_000

    def _record(self, action, **entry):
        self.time += 100
        if self.history:
            self.events.append({"action": action, "stream": 0, "time_us": self.time, **entry})

    def alloc(self, size, *stack):
        """Allocate; the stack is given innermost first, as ("/home/me/train.py", 34, "step")."""
        address, self.next = self.next, self.next + -(-size // 512) * 512
        frames = [{"filename": file, "line": line, "name": name} for file, line, name in stack]
        self.blocks[address] = {
            "address": address, "size": -(-size // 512) * 512, "requested_size": size, "state": "active_allocated",
            "frames": frames,
        }  # fmt: skip
        self._record("alloc", addr=address, size=size, frames=frames)
        return address

    def free(self, address):
        block = self.blocks[address]
        block["state"] = "inactive"
        for action in ("free_requested", "free_completed"):
            self._record(action, addr=address, size=block["requested_size"], frames=[])

    def take(self, size):
        """Take a segment from the driver."""
        self._record("segment_alloc", addr=1, size=size, frames=[])

    def oom(self, size, free, *stack):
        frames = [{"filename": file, "line": line, "name": name} for file, line, name in stack]
        self._record("oom", size=size, device_free=free, frames=frames)

    def snapshot(self):
        blocks = list(self.blocks.values())
        rest = self.segment - sum(block["size"] for block in blocks)
        blocks.append({"address": self.next, "size": rest, "requested_size": 0, "state": "inactive", "frames": []})
        segment = {
            "device": self.device, "address": 0x7F0000000000, "total_size": self.segment, "stream": 0,
            "segment_type": "large", "segment_pool_id": (0, 0), "blocks": blocks,
        }  # fmt: skip
        return {
            "segments": [segment],
            "device_traces": [[] for _ in range(self.device)] + [self.events],
            "allocator_settings": {"expandable_segments": False},
            "external_annotations": [],
        }

    def write(self, path, protocol=None):
        path.write_bytes(pickle.dumps(self.snapshot(), protocol))
        return path
