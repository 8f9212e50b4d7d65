"""While it looks for steps, the launcher notes whether a DataLoader takes single rows out of tensors in memory."""

import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, SequentialSampler, Subset, TensorDataset

from torchwhy.capture.launch.discovery import Source
from torchwhy.capture.launch.hooks import StepWatch


class Own(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.ones(2)


ROWS = TensorDataset(torch.ones(8, 2))
BATCHES = BatchSampler(SequentialSampler(ROWS), 4, drop_last=False)


@pytest.mark.parametrize(
    ("data", "options", "takes_rows"),
    [
        (ROWS, {"batch_size": 4}, True),
        (Subset(ROWS, range(4)), {"batch_size": 4}, True),
        (ROWS, {"batch_size": None, "sampler": BATCHES}, False),
        (Own(), {"batch_size": 4}, False),
        (Subset(Own(), range(4)), {"batch_size": 4}, False),
    ],
)
def test_only_batches_of_single_rows_of_tensors_count(data, options, takes_rows):
    watch = StepWatch(Source.OPTIMIZER, lambda label, before: None, lambda: None, lambda: False, lambda act: act)
    try:
        assert not watch.takes_rows
        assert len(list(DataLoader(data, **options))) in {1, 2}
        assert watch.takes_rows == takes_rows
    finally:
        watch.remove()
