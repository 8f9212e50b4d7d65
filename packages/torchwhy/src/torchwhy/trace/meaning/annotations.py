"""Labels: what PyTorch and programs announce with `record_function`."""

from __future__ import annotations

import re
from typing import Final

from torchwhy.trace.meaning.kinds import CALLED, Kind, Meaning

__all__ = [
    "BACKWARD_LABEL",
    "DATALOADER",
    "GARBAGE_COLLECTION",
    "HOUSEKEEPING",
    "LOADED_BY_WORKERS",
    "LOADED_IN_PROCESS",
    "NEXT_BATCH",
    "OPTIMIZER",
    "OPTIMIZER_STEP",
    "PYTORCHS_OWN",
    "STEP",
    "WITHOUT_FOREACH",
    "ZERO_GRAD",
    "between",
    "mark_of",
    "numberless",
    "step_label",
    "step_number",
]

_A: Final = Kind.ANNOTATION

STEP: Final = Meaning(r"ProfilerStep\*?#?\d*$", _A)
"""torch.profiler's names of the steps that its schedule knows."""

_NUMBER: Final = re.compile(r"#(\d+)$")


def step_number(name: str) -> int | None:
    """5 of "ProfilerStep#5"; None where the name has no number at its end."""
    found = _NUMBER.search(name)
    return int(found[1]) if found else None


_PREFIX: Final = "ProfilerStep#"
_BETWEEN: Final = "between "


def step_label(name: str) -> str:
    """Return "5" for "ProfilerStep#5"; other names as they are."""
    return name.removeprefix(_PREFIX)


def between(mark: str) -> str:
    """Return the name of an inferred step that lasts from one mark to the next."""
    return _BETWEEN + mark


def mark_of(name: str) -> tuple[str, bool]:
    """Return the mark of an inferred step, and whether the step lasts from one mark to the next."""
    return name.removeprefix(_BETWEEN), name.startswith(_BETWEEN)


def numberless(name: str) -> str:
    """A name with "#" instead of each number: labels of one loop often count its rounds."""
    return re.sub(r"\d+", "#", name)


OPTIMIZER: Final = Meaning(r"Optimizer\.", *CALLED)
OPTIMIZER_STEP: Final = Meaning(r"Optimizer\.step#", *CALLED)
WITHOUT_FOREACH: Final = Meaning(r"Optimizer\.step#(LBFGS|SparseAdam)\.", *CALLED)
"""Optimizers of PyTorch that have neither a fused nor a foreach implementation."""

ZERO_GRAD: Final = Meaning(r"Optimizer\.zero_grad#", *CALLED)

DATALOADER: Final = Meaning(r"enumerate\((DataLoader|DataPipe|IterDataPipe|MapDataPipe)[^)]*\)#?", _A)
"""PyTorch's own label around getting a batch."""

LOADED_IN_PROCESS: Final = Meaning(r"enumerate\(DataLoader\)#_SingleProcessDataLoaderIter", _A)
"""A batch made by the program's own process, without workers."""

LOADED_BY_WORKERS: Final = Meaning(r"enumerate\(DataLoader\)#_MultiProcessingDataLoaderIter", _A)
"""A batch that worker processes made."""

NEXT_BATCH: Final = DATALOADER | Meaning(
    r"(?i:.*(train|val|test|eval)\w*_dataloader_next)"
    r"|(?i:\W*(data_?load(er|ing)?|load_?(data|batch)|(get|fetch|next|wait_for)_?(next_?)?(data|batch)|batch_?fetch"
    r"|data_?fetch|input_?pipeline|data)\W*$)",
    _A,
)
"""Labels around getting the next batch: PyTorch's own, Lightning's, and what people call theirs."""

BACKWARD_LABEL: Final = Meaning(r"(?i:\W*((loss\W*)?backward|bwd)([ _-]?(pass|step))?\W*$)", _A)
"""Usual names of the part of a step that calls `backward`."""

HOUSEKEEPING: Final = Meaning(
    r"(?i:\W*(log(ging)?|checkpoint(ing)?|save_?(checkpoint|model|state)?|metrics?|eval(uate|uation)?"
    r"|valid(ate|ation)?|callbacks?|tensorboard|wandb)\W*$)",
    _A,
)
"""Labels around what a loop does between its steps."""

GARBAGE_COLLECTION: Final = Meaning(r"(?i:(python )?gc$|garbage.?collect)", *CALLED, Kind.PYTHON)

PYTORCHS_OWN: Final = Meaning(
    STEP.pattern
    + r"|Optimizer\.|enumerate\(|nccl:|gloo:|mpi:|ucc:|xccl:|hccl:|c10d|record_param_comms|## Call CompiledFxGraph |\["
    r"|DistributedDataParallel\.|DataParallel\.|FSDP::|FullyShardedDataParallel\.|autograd::|torch::"
    r"|Python GC$|Torch-Compiled Region|TorchDynamo Cache Lookup|Pregraph bytecode|CompiledFunction"
    r"|AOTDispatcher Runtime Wrapper|.* \(dynamo_timed\)$",
    *CALLED,
)
"""Labels that PyTorch itself makes, by their exact form: a program's own may contain any of these words.

Compilation has more; see `compiler.COMPILING`."""
