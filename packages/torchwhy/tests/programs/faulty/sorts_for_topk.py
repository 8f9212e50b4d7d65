"""Sorts the scores of all 20,000 words to take the ten best; `topk` finds them in one pass."""

import sys

import torch
from torch import nn

EXPECTED = r"topk"
MENDED = "mended" in sys.argv


def best(scores, count):
    if MENDED:
        return scores.topk(count).indices
    return torch.argsort(scores, dim=-1, descending=True)[:, :count]  # planted


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(20_000, 64), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 20_000)).eval()
    words = torch.randint(0, 20_000, (16,))
    for _ in range(30):
        candidates = best(model(words), 10)
        words = candidates.gather(1, torch.randint(0, 10, (16, 1)))[:, 0]
    print(f"last words {words[:4].tolist()}")


main()
