"""Embeds documents in large batches under inference_mode."""

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.EmbeddingBag(20_000, 512),
        nn.Linear(512, 2048),
        nn.ReLU(),
        nn.Linear(2048, 2048),
        nn.ReLU(),
        nn.Linear(2048, 128),
    ).eval()
    documents = torch.randint(0, 20_000, (20 * 512, 64))
    with torch.inference_mode():
        embedded = [nn.functional.normalize(model(batch), dim=1) for batch in documents.split(512)]
    print(f"embedded {torch.cat(embedded).shape[0]} documents")


main()
