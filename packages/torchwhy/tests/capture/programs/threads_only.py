"""All work happens in other threads, started as the argument says; the main thread waits for them."""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool

import torch

how, seconds = sys.argv[1], float(sys.argv[2])
torch.set_num_threads(1)
weights = torch.randn(8, 8)


def work(_):
    end = time.monotonic() + seconds
    x = torch.ones(4, 8)
    for turn in range(1_000_000):
        x = torch.tanh(x @ weights)
        if turn > 99 and time.monotonic() > end:
            break


if how == "executor":
    with ThreadPoolExecutor(2) as executor:
        list(executor.map(work, range(2)))
elif how == "pool":
    with ThreadPool(2) as pool:
        pool.map(work, range(2))
else:
    threads = [threading.Thread(target=work, args=(0,), daemon=how == "daemons") for _ in range(2)]
    for thread in threads:
        thread.start()
    if how == "daemons":
        for thread in threads:
            thread.join()
print("done")
