"""Trains an LSTM on texts of several lengths, packed so that padding costs nothing."""

import torch
from torch import nn


class Tagger(nn.Module):
    """Tags each word."""

    def __init__(self):
        super().__init__()
        self.embed, self.lstm, self.head = nn.Embedding(5000, 128), nn.LSTM(128, 256), nn.Linear(256, 12)

    def forward(self, packed):
        words = nn.utils.rnn.PackedSequence(self.embed(packed.data), packed.batch_sizes)
        return self.head(self.lstm(words)[0].data)


def main():
    torch.manual_seed(0)
    model = Tagger()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    lengths = torch.randint(16, 40, (12, 64)).sort(1, descending=True).values.tolist()
    batches = [nn.utils.rnn.pack_sequence([torch.randint(0, 5000, (n,)) for n in row]) for row in lengths]
    for step in range(24):
        packed = batches[step % 12]
        loss = nn.functional.cross_entropy(model(packed), packed.data % 12)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"last loss {loss.item():.3f}")


main()
