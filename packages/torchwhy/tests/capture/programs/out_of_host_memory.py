import torch


def grow():
    return torch.empty(1 << 60)


grow()
