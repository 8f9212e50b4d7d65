"""Logs as PyTorch writes them for TORCH_TRACE, in small."""

import json

BREAK = """Graph break in user code at /home/me/train.py:4
Graph Break Reason: Encountered graph break when attempting to trace CALL:

Unsupported Tensor.item() call
  Explanation: It needs the value.

User code traceback:
  File "/home/me/train.py", line 4, in step
    s = y.item()
"""


def record(fields, payload=None, process=4711):
    fields = fields if payload is None else {**fields, "has_payload": "0" * 32}
    line = f"V1128 06:50:01.000000 {process} torch/_dynamo/exc.py:589] {json.dumps(fields)}\n"
    return line + "".join(f"\t{part}\n" for part in (payload or "").split("\n") if payload is not None)


def artifact(name, payload, frame=0, version=0, **more):
    ids = {"frame_id": frame, "frame_compile_id": version, "attempt": 0}
    return record({"artifact": {"name": name, "encoding": "string"}, **ids}, payload, **more)


def started(frame, version, line, name="step"):
    ids = {"frame_id": frame, "frame_compile_id": version, "attempt": 0}
    stack = [{"line": 90, "name": "main", "filename": 1}, {"line": line, "name": name, "filename": 1}]
    return record({"dynamo_start": {"stack": stack}, **ids})


def metrics(frame, version, kind="compilation_metrics", **fields):
    return record({kind: fields, "frame_id": frame, "frame_compile_id": version})


WHOLE = "".join(
    [
        record({"str": ["/home/me/train.py", 1]}),
        artifact("torch_version", json.dumps({"pytorch_version": "2.13.0"}, indent=0)),
        started(0, 0, 3),
        record({"dynamo_output_graph": {"sizes": {}}, "frame_id": 0}, "class GraphModule:\n    pass"),
        artifact("dynamo_graph_break_reason", BREAK),
        metrics(0, 0, duration_us=1500, graph_op_count=2, guard_count=8),
        started(1, 0, 4, "torch_dynamo_resume_in_step_at_4"),
        metrics(1, 0, duration_us=700, graph_op_count=1, cudagraph_skip_reason="skipping cudagraphs due to cpu device"),
        artifact("recompile_reasons", "0/0: tensor 'x' size mismatch at index 0. expected 4, actual 5", 0, 1),
        metrics(0, 1, kind="bwd_compilation_metrics", duration_us=300),
    ]
)
