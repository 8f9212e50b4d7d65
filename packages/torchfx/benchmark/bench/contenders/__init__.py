"""What is compared: one file per library, run by `worker.py` in a separate process.

The files import nothing from their neighbours, so that they also run under a Python that has no torchfx. Each says in
NEEDS what must be installed and offers

    CONTENDERS  name -> prepare(job, x), which returns a function of no arguments: the work to be timed
    STREAMS     name -> prepare(job), which returns step(block): the next block's output, with the state carried;
                for the contenders that `latency.FROM_REST` names, each block starts from rest

A job is a dictionary: fs, device, sos and taps of the whole chain, and each filter's design with its b and a.
"""
