"""Writes what a trace of PyTorch's profiler holds as other recorders write it, after their schemas.

Nsight Systems: "SQLite Schema Reference" of its user guide. rocpd: rocpd_tables.sql and data_views.sql of
rocprofiler-sdk. Perfetto: protos/perfetto/trace. Times go through unchanged, to the nanosecond.
"""

import json
import sqlite3
import struct
from contextlib import closing
from decimal import Decimal

HOST_KINDS = ("cpu_op", "user_annotation")
CALL_KINDS = ("cuda_runtime", "cuda_driver", "hip_runtime")
WORK_KINDS = ("kernel", "gpu_memcpy", "gpu_memset")
WAYS = ["", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"]
MEMORY = ["Pageable", "Pinned", "Device", "Array", "Managed"]


def loaded(text):
    """The JSON of a trace with exact decimals."""
    return json.loads(text, parse_float=Decimal)


def ns(value):
    return int(Decimal(value) * 1000)


def complete(trace, *kinds):
    return [event for event in trace["traceEvents"] if event.get("ph") == "X" and event.get("cat") in kinds]


def times(event):
    start = ns(event["ts"])
    return start, start + ns(event["dur"])


def range_text(event):
    """What emit_nvtx writes for an operator; a label's own name."""
    args, text = event.get("args", {}), event["name"]
    if event["cat"] == "cpu_op":
        text += f", seq = {args['Sequence number']}" if args.get("Sequence number", -1) >= 0 else ""
        text += f", op_id = {args['External id']}"
        text += f", sizes = {json.dumps(args['Input Dims'])}" if args.get("Input Dims") else ""
    return text


# Nsight Systems

NSIGHT = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, totalMemory INTEGER,
    smCount INTEGER, computeMajor INTEGER, computeMinor INTEGER, maxWarpsPerSm INTEGER, threadsPerWarp INTEGER,
    cuDevice INTEGER);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);
CREATE TABLE ThreadNames (nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
    globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, registersPerThread INTEGER NOT NULL, gridX INTEGER,
    gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER, staticSharedMemory INTEGER,
    dynamicSharedMemory INTEGER, graphNodeId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER, graphNodeId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    value INTEGER NOT NULL, bytes INTEGER NOT NULL, memKind INTEGER, graphNodeId INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER,
    category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER,
    domainId INTEGER);
"""


class Rows:
    """Inserts rows by the names of columns, texts by their numbers."""

    def __init__(self, database):
        self.database, self.texts = database, {}

    def add(self, table, **values):
        names = ", ".join(f'"{name}"' for name in values)
        marks = ", ".join("?" * len(values))
        self.database.execute(f'INSERT INTO "{table}" ({names}) VALUES ({marks})', tuple(values.values()))

    def text(self, value, table="StringIds", column="value"):
        if value not in self.texts:
            self.texts[value] = len(self.texts) + 1
            self.add(table, id=self.texts[value], **{column: value})
        return self.texts[value]


def write_nsight(trace, path):
    with closing(sqlite3.connect(path)) as database:
        database.executescript(NSIGHT)
        rows = Rows(database)
        for number, kind in enumerate(MEMORY):
            rows.add("ENUM_CUDA_MEM_KIND", id=number, name=f"CUDA_MEMOPR_MEMORY_KIND_{kind.upper()}", label=kind)
        for device in trace.get("deviceProperties", ()):
            capability = {"computeMajor": device["computeMajor"], "computeMinor": device["computeMinor"]}
            threads = {"maxWarpsPerSm": device["maxThreadsPerMultiprocessor"] // 32, "threadsPerWarp": 32}
            what = {"name": device["name"], "totalMemory": device["totalGlobalMem"], "smCount": device["numSms"]}
            rows.add("TARGET_INFO_GPU", vmId=1, id=device["id"], cuDevice=device["id"], **what, **capability, **threads)
        rows.add("TARGET_INFO_SESSION_START_TIME", utcEpochNs=trace.get("baseTimeNanoseconds", 0))
        pids = {event["pid"] for event in complete(trace, *HOST_KINDS, *CALL_KINDS)}
        for event in complete(trace, *HOST_KINDS):
            start, end = times(event)
            kind = {"eventType": 59, "textId": rows.text(range_text(event)), "domainId": 0}
            rows.add("NVTX_EVENTS", start=start, end=end, globalTid=thread(event), **kind)
        for event in complete(trace, *CALL_KINDS):
            start, end = times(event)
            call = {"nameId": rows.text(event["name"] + "_v7000"), "returnValue": 0, "eventClass": 0}
            call |= {"correlationId": event["args"].get("correlation"), "globalTid": thread(event)}
            rows.add("CUPTI_ACTIVITY_KIND_RUNTIME", start=start, end=end, **call)
        for event in complete(trace, *WORK_KINDS):
            table, values = nsight_work(rows, event)
            start, end = times(event)
            args = event["args"]
            where = {"deviceId": args["device"], "contextId": args.get("context", 1), "streamId": args["stream"]}
            where |= {"correlationId": args.get("correlation"), "globalPid": min(pids, default=1) << 24}
            where["graphNodeId"] = args.get("graph node id")
            rows.add(table, start=start, end=end, **where, **values)
        database.commit()
    return path


def thread(event):
    return (event["pid"] << 24) + event["tid"]


def nsight_work(rows, event):
    args, name = event["args"], event["name"]
    if event["cat"] == "kernel":
        (gx, gy, gz), (bx, by, bz) = args.get("grid", (None,) * 3), args.get("block", (None,) * 3)
        sizes = {"gridX": gx, "gridY": gy, "gridZ": gz, "blockX": bx, "blockY": by, "blockZ": bz}
        memory = {"staticSharedMemory": args.get("shared memory"), "dynamicSharedMemory": 0}
        names = {"demangledName": rows.text(name), "shortName": rows.text(name[:8])}
        registers = args.get("registers per thread", 0)
        return "CUPTI_ACTIVITY_KIND_KERNEL", {"registersPerThread": registers, **names, **sizes, **memory}
    if event["cat"] == "gpu_memset":
        return "CUPTI_ACTIVITY_KIND_MEMSET", {"value": 0, "bytes": args["bytes"], "memKind": 2}
    way, _, places = name.removeprefix("Memcpy ").partition(" (")
    source, _, target = places.rstrip(")").partition(" -> ")
    kinds = {"copyKind": WAYS.index(way)}
    if source in MEMORY and target in MEMORY:
        kinds |= {"srcKind": MEMORY.index(source), "dstKind": MEMORY.index(target)}
    return "CUPTI_ACTIVITY_KIND_MEMCPY", {"bytes": args["bytes"], **kinds}


# rocpd

ROCPD = """
CREATE TABLE rocpd_metadata (id INTEGER PRIMARY KEY, tag TEXT NOT NULL, value TEXT NOT NULL);
CREATE TABLE rocpd_info_agent (id INTEGER PRIMARY KEY, guid TEXT, type TEXT, absolute_index INTEGER,
    logical_index INTEGER, type_index INTEGER, name TEXT, product_name TEXT, extdata JSONB DEFAULT '{}');
CREATE TABLE region_rows (guid TEXT, pid INTEGER, tid INTEGER, category TEXT, name TEXT, start BIGINT, end BIGINT,
    stack_id INTEGER, extdata TEXT);
CREATE TABLE kernel_rows (guid TEXT, pid INTEGER, tid INTEGER, name TEXT, agent_type_index INTEGER, stream_id INTEGER,
    queue_id INTEGER, start BIGINT, end BIGINT, grid_x INTEGER, grid_y INTEGER, grid_z INTEGER, workgroup_x INTEGER,
    workgroup_y INTEGER, workgroup_z INTEGER, lds_size INTEGER, stack_id INTEGER);
CREATE TABLE copy_rows (guid TEXT, pid INTEGER, tid INTEGER, name TEXT, src_agent_type TEXT,
    src_agent_type_index INTEGER, dst_agent_type TEXT, dst_agent_type_index INTEGER, stream_id INTEGER,
    start BIGINT, end BIGINT, size INTEGER, stack_id INTEGER);
CREATE VIEW regions AS SELECT * FROM region_rows;
CREATE VIEW kernels AS SELECT * FROM kernel_rows;
CREATE VIEW memory_copies AS SELECT * FROM copy_rows;
"""

_SIDES = {"H": ("CPU", "HOST"), "D": ("GPU", "DEVICE")}


def write_rocpd(trace, path):
    """As version 3 and 4 have it in their views; kernels fill memory on AMD's devices, so fills become kernels."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript(ROCPD)
        rows = Rows(database)
        for device in trace.get("deviceProperties", ()):
            about = {"type": "GPU", "absolute_index": device["id"] + 1, "product_name": device["name"]}
            about["extdata"] = json.dumps({"cu_count": device["numSms"]})
            rows.add(
                "rocpd_info_agent", type_index=device["id"], logical_index=device["id"] + 1, name="gfx942", **about
            )
        for event in complete(trace, *HOST_KINDS, *CALL_KINDS):
            start, end = times(event)
            what = {"category": "HIP_RUNTIME_API", "name": event["name"], "stack_id": event["args"].get("correlation")}
            if event["cat"] in HOST_KINDS:
                message = json.dumps({"message": range_text(event)})
                what = {"category": "MARKER_CORE_RANGE_API", "name": "roctxRangePushA", "extdata": message}
            rows.add("region_rows", guid="a", pid=event["pid"], tid=event["tid"], start=start, end=end, **what)
        for event in complete(trace, *WORK_KINDS):
            start, end = times(event)
            args = event["args"]
            common = {"guid": "a", "pid": 1, "tid": 1, "stream_id": args["stream"], "stack_id": args.get("correlation")}
            common |= {"start": start, "end": end}
            if event["cat"] != "gpu_memcpy":
                grid, block = args.get("grid", [1, 1, 1]), args.get("block", [1, 1, 1])
                sizes = {f"grid_{axis}": grid[i] * block[i] for i, axis in enumerate("xyz")}
                sizes |= {f"workgroup_{axis}": block[i] for i, axis in enumerate("xyz")}
                rows.add("kernel_rows", name=event["name"], agent_type_index=args["device"], **common, **sizes)
                continue
            way = event["name"].removeprefix("Memcpy ")[:4]
            (source, spelled), (target, written) = _SIDES[way[0]], _SIDES[way[3]]
            sides = {"src_agent_type": source, "dst_agent_type": target, "name": f"MEMORY_COPY_{spelled}_TO_{written}"}
            sides |= {"src_agent_type_index": args["device"] if source == "GPU" else 0}
            sides |= {"dst_agent_type_index": args["device"] if target == "GPU" else 0}
            rows.add("copy_rows", size=args["bytes"], **common, **sides)
        database.commit()
    return path


def write_rocm_json(trace, path):
    """As `--output-format json`: names by the numbers of kind and operation, kernels by theirs, agents by handles."""
    kinds, names, symbols = ["HIP_RUNTIME_API", "MARKER_CORE_API", "MEMORY_COPY"], [[], [], []], []
    out = {"hip_api": [], "marker_api": [], "kernel_dispatch": [], "memory_copy": []}
    messages = []

    def operation(kind, name):
        names[kind] += [] if name in names[kind] else [name]
        return {"kind": kind, "operation": names[kind].index(name)}

    def record(event, correlation):
        start, end = times(event)
        found = {
            "start_timestamp": start,
            "end_timestamp": end,
            "correlation_id": {"internal": correlation, "external": 0},
        }
        return found | {"thread_id": event["tid"]}

    for event in complete(trace, *HOST_KINDS):
        messages.append({"key": 10**6 + len(messages), "value": range_text(event)})
        out["marker_api"].append(record(event, messages[-1]["key"]) | operation(1, "roctxThreadRangeA"))
    for event in complete(trace, *CALL_KINDS):
        out["hip_api"].append(record(event, event["args"].get("correlation", 0)) | operation(0, event["name"]))
    for event in complete(trace, *WORK_KINDS):
        args = event["args"]
        found = record(event, args.get("correlation", 0)) | {"stream_id": {"handle": args["stream"]}}
        agent = {"handle": 500 + args["device"]}
        if event["cat"] == "gpu_memcpy":
            way = event["name"].removeprefix("Memcpy ")[:4]
            found |= operation(2, f"MEMORY_COPY_{_SIDES[way[0]][1]}_TO_{_SIDES[way[3]][1]}")
            found["src_agent_id"] = agent if way[0] == "D" else {"handle": 1}
            found["dst_agent_id"] = agent if way[3] == "D" else {"handle": 1}
            out["memory_copy"].append(found | {"bytes": args["bytes"]})
            continue
        symbols += [] if event["name"] in symbols else [event["name"]]
        grid, block = args.get("grid", [1, 1, 1]), args.get("block", [1, 1, 1])
        info = {"agent_id": agent, "queue_id": {"handle": 3}, "kernel_id": symbols.index(event["name"])}
        info["workgroup_size"] = dict(zip("xyz", block, strict=True))
        info["grid_size"] = {axis: grid[i] * block[i] for i, axis in enumerate("xyz")}
        out["kernel_dispatch"].append(found | {"dispatch_info": info})
    agents = [{"type": 1, "node_id": 0, "id": {"handle": 1}}]
    for device in trace.get("deviceProperties", ()):
        about = {"id": {"handle": 500 + device["id"]}, "node_id": 1 + device["id"], "product_name": device["name"]}
        agents.append({"type": 2, "cu_count": device["numSms"], **about})
    pid = next((event["pid"] for event in complete(trace, *HOST_KINDS, *CALL_KINDS)), 1)
    tables = [{"kind": kind, "operations": names[i]} for i, kind in enumerate(kinds)]
    process = {
        "metadata": {"pid": pid},
        "agents": agents,
        "strings": {"buffer_records": tables, "marker_api": messages},
    }
    process["kernel_symbols"] = [{"kernel_id": i, "formatted_kernel_name": name} for i, name in enumerate(symbols)]
    path.write_text(json.dumps({"rocprofiler-sdk-tool": [process | {"buffer_records": out}]}, indent=1))
    return path


# Perfetto


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def number(key, value):
    return varint(key << 3) + varint(value)


def message(key, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(key << 3 | 2) + varint(len(data)) + data


def double(key, value):
    return varint(key << 3 | 1) + struct.pack("<d", value)


def annotation(name, value):
    """A DebugAnnotation."""
    data = message(10, name)
    if isinstance(value, bool):
        return data + number(2, value)
    if isinstance(value, int):
        return data + number(4, value)
    if isinstance(value, float | Decimal):
        return data + double(5, float(value))
    if isinstance(value, dict):
        return data + b"".join(message(11, annotation(key, each)) for key, each in value.items())
    if isinstance(value, list):
        return data + (b"".join(message(12, annotation("", each)) for each in value) or number(2, 0))
    return data + message(6, str(value))


def track_of(event):
    return hash((event["pid"], event["tid"])) % 2**60 + 1


class Packets:
    """Packets of one sequence; with `incremental` names are interned and times count from the packet before."""

    def __init__(self, *, incremental=True):
        self.incremental, self.names, self.now = incremental, {}, 0
        self.out = []
        if incremental:
            clocks = message(1, number(1, 6) + number(2, 5000)) + message(
                1, number(1, 64) + number(2, 5000) + number(3, 1)
            )
            self.now = 5000
            self.add(message(6, clocks) + message(59, number(58, 64)) + number(13, 1))

    def add(self, data):
        self.out.append(message(1, data + number(10, 7)))

    def interned(self, key, text):
        """The number of a name, and the entry that says so where it is new."""
        known = self.names.setdefault(key, {})
        new = text not in known
        identifier = known.setdefault(text, len(known) + 1)
        return identifier, message(key, number(1, identifier) + message(2, text)) if new else b""

    def event(self, time, kind, track, category="", name="", arguments=None):
        data = number(9, kind) + number(11, track)
        data += b"".join(message(4, annotation(key, value)) for key, value in (arguments or {}).items())
        if not self.incremental:
            data += (message(22, category) + message(23, name)) if kind == 1 else b""
            return self.add(number(8, time) + message(11, data))
        entries = b""
        if kind == 1:
            of_category, entry = self.interned(1, category)
            of_name, other = self.interned(2, name)
            data += number(3, of_category) + number(10, of_name)
            entries = message(12, entry + other) if entry + other else b""
        delta = time - self.now
        if delta < 0:  # this clock cannot go back
            return self.add(number(8, time) + number(58, 6) + message(11, data) + entries + number(13, 2))
        self.now = time
        return self.add(number(8, delta) + message(11, data) + entries + number(13, 2))


def edges(events):
    """Where each event begins and ends: time, track, which of both, event. On a track, those inside end first."""
    for track in {track_of(event) for event in events}:
        mine = [event for event in events if track_of(event) == track]
        begun = []
        for event in sorted(mine, key=lambda event: (times(event)[0], -times(event)[1])):
            while begun and times(begun[-1])[1] <= times(event)[0]:
                yield times(begun[-1])[1], track, False, begun.pop()
            begun.append(event)
            yield times(event)[0], track, True, event
        while begun:
            yield times(begun[-1])[1], track, False, begun.pop()


def write_perfetto(trace, path, *, incremental=True):
    packets = Packets(incremental=incremental)
    events = complete(trace, *HOST_KINDS, *CALL_KINDS, *WORK_KINDS)
    for event in {track_of(event): event for event in events}.values():
        thread = message(4, number(1, event["pid"]) + number(2, event["tid"]))
        packets.add(message(60, number(1, track_of(event)) + thread))
    for _, track, opens, event in sorted(edges(events), key=lambda edge: edge[0]):  # as the clock runs
        if opens:
            packets.event(ns(event["ts"]), 1, track, event["cat"], event["name"], event.get("args"))
        else:
            packets.event(times(event)[1], 2, track)
    path.write_bytes(b"".join(packets.out))
    return path
