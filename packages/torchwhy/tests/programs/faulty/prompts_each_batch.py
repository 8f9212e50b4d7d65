"""Classifies images by the texts of the classes: the text encoder runs over the same prompts for each batch."""

import sys

import torch
from torch import nn

EXPECTED = r"computed-again"
MENDED = "mended" in sys.argv


class TextEncoder(nn.Module):
    """Words to a vector per text."""

    def __init__(self, width):
        super().__init__()
        self.table = nn.Embedding(1000, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
        self.layers, self.head = nn.TransformerEncoder(layer, 1), nn.Linear(width, 64)

    def forward(self, words):
        return self.head(self.layers(self.table(words)).mean(1))


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    texts = TextEncoder(64).eval()
    images = nn.Sequential(nn.Conv2d(3, 16, 4, stride=4), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten())
    project, prompts = nn.Linear(256, 64), torch.randint(0, 1000, (40, 12))
    kept = nn.functional.normalize(texts(prompts), dim=-1) if MENDED else None
    seen = torch.zeros(40)
    for _ in range(64):
        features = nn.functional.normalize(project(images(torch.randn(32, 3, 32, 32))), dim=-1)
        classes = kept if kept is not None else nn.functional.normalize(texts(prompts), dim=-1)  # planted
        seen += (features @ classes.T).softmax(-1).sum(0)
    print(f"most seen: {seen.argmax().item()}")


main()
