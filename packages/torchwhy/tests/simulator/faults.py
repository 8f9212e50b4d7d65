"""The faults that can be planted in a program. Each is taken out by running the same program without it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FAULTS", "Fault"]


@dataclass(frozen=True)
class Fault:
    """What is wrong with a program, and what the program does without it.

    Attributes:
        name: how the fault is called here.
        wrong: what the program does.
        right: what it does once the fault is taken out.
        ranks: whether it needs several ranks.
        excludes: faults of which only one at a time makes sense.
    """

    name: str
    wrong: str
    right: str
    ranks: bool = False
    excludes: tuple[str, ...] = ()


_ALL = (
    Fault("item", "reads loss.item() after every backward pass", "keeps the loss on the device"),
    Fault("print", "prints the loss tensor in every step", "prints nothing"),
    Fault("synchronize", "calls torch.cuda.synchronize() at the end of every step", "never does"),
    Fault("norms", "reads the norm of each gradient with .item()", "keeps the norms on the device"),
    Fault("loader-in-process", "loads batches in its own process", "has workers", excludes=("loader-slow",)),
    Fault("loader-slow", "has workers that are slower than the steps", "has enough workers"),
    Fault("pageable", "copies batches from pageable memory and waits", "pins memory and copies without waiting",
          excludes=("copy-serial",)),
    Fault("host-tensors", "makes tensors on the host and moves them", "makes them on the device"),
    Fault("copy-serial", "copies large batches on the stream that computes", "copies the next batch meanwhile"),
    Fault("tiny-kernels", "computes activations in many short kernels", "computes them in one kernel each"),
    Fault("eager-small", "launches short kernels one by one", "replays them as one CUDA graph",
          excludes=("item", "norms")),
    Fault("python", "runs slow Python between operators", "runs little Python"),
    Fault("gc", "collects garbage in the middle of steps", "does not collect"),
    Fault("zero-grad", "fills gradients with zeros, one by one", "drops gradients"),
    Fault("loop-optimizer", "updates parameters one by one in many kernels", "has a fused optimizer"),
    Fault("serial-allreduce", "reduces gradients after the backward pass", "reduces them meanwhile", ranks=True,
          excludes=("small-allreduces",)),
    Fault("small-allreduces", "reduces each gradient by itself", "reduces buckets of gradients", ranks=True),
    Fault("straggler", "has a rank whose device is slower", "has equal ranks", ranks=True),
    Fault("cold", "records its first step, which warms up", "records after warming up"),
    Fault("allocator", "takes memory from the driver and gives it back in every step", "reuses memory"),
    Fault("recompile", "compiles code again in the middle", "compiles nothing"),
    Fault("double", "computes a part of the model in float64", "computes it in bfloat16"),
    Fault("contiguous", "copies tensors to make them contiguous", "does not copy them"),
    Fault("sgemm", "multiplies one large matrix in float32 without tensor cores", "multiplies it in bfloat16"),
    Fault("small-grid", "has a kernel with a few blocks only", "has as many blocks as the device needs"),
    Fault("plain-attention", "computes attention step by step", "computes it in one kernel"),
    Fault("evaluation", "evaluates after every third step", "does not evaluate"),
    Fault("checkpoint", "saves a checkpoint after every third step", "saves none"),
    Fault("lock", "has a thread that holds the interpreter's lock", "has no such thread"),
    Fault("log-rarely", "reads many numbers with .item() and writes them after every third step", "writes none"),
    Fault("cast", "casts the inputs of every product", "keeps them in the type it computes in"),
    Fault("outputs-to-host", "copies its outputs to the host in every step", "keeps them on the device"),
    Fault("accumulation", "reduces gradients after every part of a batch", "reduces them after the last part",
          ranks=True, excludes=("serial-allreduce", "small-allreduces")),
    Fault("small-gemms", "multiplies matrices in a loop over heads", "multiplies them in one batch"),
)  # fmt: skip

FAULTS = {fault.name: fault for fault in _ALL}
