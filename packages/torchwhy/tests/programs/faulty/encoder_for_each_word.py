"""Describes photos word by word; the encoder runs again for every word, on the same images."""

import sys

import torch
from torch import nn

EXPECTED = r"computed-again: .*before the loop"
MENDED = "mended" in sys.argv


class Captioner(nn.Module):
    def __init__(self, words=4000, width=192):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, 24, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(24, 48, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(48, width, 3, stride=2, padding=1),
            nn.ReLU(),
        )
        self.embedding = nn.Embedding(words, width)
        self.query = nn.Linear(width, width)
        self.cell = nn.GRUCell(2 * width, width)
        self.head = nn.Linear(width, words)

    def encode(self, images):
        return self.encoder(images).flatten(2).transpose(1, 2)

    def attend(self, places, state):
        scores = torch.bmm(places, self.query(state).unsqueeze(2)).squeeze(2)
        return torch.bmm(scores.softmax(1).unsqueeze(1), places).squeeze(1)

    def next_word(self, images, word, state):
        places = self.encode(images)  # planted
        return self.word_from(places, word, state)

    def word_from(self, places, word, state):
        context = self.attend(places, state)
        state = self.cell(torch.cat([self.embedding(word), context], 1), state)
        return self.head(state).argmax(1), state


@torch.inference_mode()
def describe(model, images, length=20):
    state = torch.zeros(len(images), 192)
    word = torch.ones(len(images), dtype=torch.long)
    words = []
    places = model.encode(images) if MENDED else None
    for _ in range(length):
        if MENDED:
            word, state = model.word_from(places, word, state)
        else:
            word, state = model.next_word(images, word, state)
        words.append(word)
    return torch.stack(words, 1)


def main():
    torch.manual_seed(0)
    model = Captioner().eval()
    for batch in range(12):
        captions = describe(model, torch.rand(8, 3, 96, 96))
        print(batch, captions[0, :5].tolist())


main()
