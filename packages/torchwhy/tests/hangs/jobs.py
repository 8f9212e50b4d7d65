"""Dumps of the flight recorder as PyTorch 2.13 writes them (format 2.10), of jobs that hang in a known way."""

import io
import json
import pickle

WORLD = ("0", "default_pg")


class Pickler(pickle._Pickler):
    """Writes as PyTorch does: only texts and frames of stacks are remembered, and lists are appended to at once.

    (torch/csrc/jit/serialization/pickler.cpp.)
    """

    dispatch = pickle._Pickler.dispatch.copy()

    def memoize(self, value):
        if isinstance(value, str) and value not in self.texts:
            self.texts[value] = value  # equal texts are one
            super().memoize(value)

    def save(self, value, save_persistent_id=True):
        super().save(self.texts.get(value, value) if isinstance(value, str) else value)

    def save_list(self, value):
        self.write(b"](")
        for item in value:
            self.save(item)
        self.write(b"e")

    def save_dict(self, value):
        frame = tuple(value.values()) if "filename" in value else None
        if frame in self.frames:
            self.write(self.get(self.frames[frame]))
            return
        self.write(b"}(")
        for key, item in value.items():
            self.save(key)
            self.save(item)
        self.write(b"u")
        if frame is not None:
            self.frames[frame] = len(self.memo)
            self.write(self.put(len(self.memo)))
            self.memo[id(value)] = len(self.memo), value

    dispatch[list], dispatch[dict] = save_list, save_dict


def as_pytorch(content):
    file = io.BytesIO()
    pickler = Pickler(file, 2)
    pickler.texts, pickler.frames = {}, {}
    pickler.dump(content)
    return file.getvalue()


class Rank:
    """Writes what one rank called, in order."""

    def __init__(self, groups):
        self._groups, self._numbers, self.entries = groups, {}, []

    def call(
        self, name, sizes=((4,),), *, group=WORLD, state="completed", line=10, dtype="Float", out=None, again=False
    ):
        peer = " " in name
        key = (group, peer)
        self._numbers[key] = self._numbers.get(key, 0) + (not again)
        number = self._numbers[key]
        frames = [
            {"name": "wrapper", "filename": "/x/site-packages/torch/distributed/c10d_logger.py", "line": 83},
            {"name": "step", "filename": "/home/me/train.py", "line": line},
        ]  # fmt: skip
        self.entries.append(
            {
                "frames": frames,
                "record_id": len(self.entries),
                "pg_id": 0,
                "process_group": group,
                "collective_seq_id": 0 if peer else number,
                "p2p_seq_id": number if peer else 0,
                "op_id": len(self.entries) + 1,
                "profiling_name": f"nccl:{name}",
                "time_created_ns": 1_795_849_629_336_138_095 + len(self.entries),
                "input_sizes": [list(size) for size in sizes],
                "input_dtypes": [dtype],
                "output_sizes": [list(size) for size in (out or sizes)],
                "output_dtypes": [dtype],
                "state": state,
                "time_discovered_started_ns": None,
                "time_discovered_completed_ns": None,
                "retired": state == "completed",
                "timeout_ms": 600_000,
                "is_p2p": peer,
            }
        )
        return self

    def waits(self, name, sizes=((4,),), *, state="started", **more):
        return self.call(name, sizes, state=state, **more)

    def content(self):
        config = {
            name: {"name": name, "desc": desc, "ranks": str(list(ranks))}
            for (name, desc), ranks in self._groups.items()
        }
        return {
            "version": "2.10",
            "pg_config": config,
            "comm_lib_version": "2.27.5",
            "pg_status": {},
            "entries": self.entries,
        }


def job(ranks, calls, groups=None):
    """Let `calls(rank, number)` fill each rank's dump; return them by rank."""
    found = {}
    for number in range(ranks):
        found[number] = Rank({WORLD: range(ranks), **(groups(number) if groups else {})})
        for _ in range(5):
            found[number].call("all_reduce", ((256,),), line=20)
        calls(found[number], number)
    return found


def write_dumps(folder, ranks, *, as_json=False, without=()):
    folder.mkdir(parents=True, exist_ok=True)
    for number, rank in ranks.items():
        if number not in without:
            content = rank.content()
            if as_json:
                for entry in content["entries"]:
                    del entry["frames"]
                (folder / f"trace_rank_{number}.json").write_text(json.dumps(content, sort_keys=True))
            else:
                (folder / f"nccl_trace_rank_{number}").write_bytes(as_pytorch(content))
    return folder


def another_collective(rank, number):
    rank.waits("broadcast" if number == 3 else "all_reduce", line=33 if number == 3 else 40)
