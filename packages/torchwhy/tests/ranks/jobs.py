"""Writes the traces of a job: one program on several ranks, each with its own clock."""

from tests.traces import Story

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def rank_story(
    rank, ranks, *, compute, late=0, steps=4, transfer=50, size=4_000_000, numbered=True, first=3, collectives=2, **top
):
    """One rank: per step a computing kernel, then all-reduces that end on all ranks together.

    Args:
        compute: microseconds per rank. late: microseconds by which the host of each rank launches late.
        transfer: of a collective without waiting.
    """
    info = {"backend": "nccl", "rank": rank, "world_size": ranks}
    story = Story(**{"distributedInfo": info, **top})
    clock = 1_000_000 * (rank * 7919 % 13)  # clocks of machines disagree
    arrivals = [50 + c + (late[r] if isinstance(late, list) else 0) for r, c in enumerate(compute)]
    together = max(arrivals)
    mine = late[rank] if isinstance(late, list) else 0
    length = together + (transfer + 5) * collectives + 20
    for i in range(steps):
        at = clock + length * i
        story.step(first + i, at, length - 5)
        story.kernel("gemm", at + arrivals[rank] - compute[rank], compute[rank], launch_at=at + 10 + mine)
        for k in range(collectives):
            start = at + (arrivals[rank] if k == 0 else together + (transfer + 5) * k)
            end = at + together + (transfer + 5) * k + transfer
            args = {"Collective name": "allreduce", "In msg nelems": size // 4, "Out msg nelems": size // 4}
            args |= {"dtype": "Float", "Group size": ranks, "Process Group Name": "0"}
            if numbered:
                args["Seq"] = i * collectives + k
            story.kernel(ALL_REDUCE, start, end - start, launch_at=at + 20 + k + mine, stream=20, **args)
    return story


def write_job(folder, ranks=4, *, name="rank{}.json", **how):
    """Write all ranks; returns the folder."""
    folder.mkdir(exist_ok=True)
    how.setdefault("compute", [300] * ranks)
    for rank in range(ranks):
        rank_story(rank, ranks, **how).write(folder / name.format(rank))
    return folder
