"""Says what a script sees of the way it was started."""

import multiprocessing
import sys
import threading
from pathlib import Path

import torch


def square(number):
    return number * number


if __name__ == "__main__":
    print(sys.argv, __name__, __file__, __package__, __spec__, Path(sys.path[0]).name)
    print(sys.modules["__main__"].square is square, "annotations" in globals())
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(square, [3]))
    threading.Thread(target=lambda: print(float(torch.ones(2).sum()))).start()
    {}["missing"]
