"""Recognises letters in speech with a GRU and the CTC loss; the utterances are sorted by length."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Utterances(Dataset):
    def __init__(self, count):
        generator = torch.Generator().manual_seed(0)
        lengths = torch.randint(80, 120, (count,), generator=generator).sort().values.tolist()
        self.frames = [torch.randn(length, 40, generator=generator) for length in lengths]
        self.letters = [torch.randint(1, 28, (length // 8,), generator=generator) for length in lengths]

    def __len__(self):
        return len(self.frames)

    def __getitem__(self, index):
        return self.frames[index], self.letters[index]


def collate(items):
    frames, letters = zip(*items, strict=True)
    lengths = torch.tensor([len(x) for x in frames])
    return nn.utils.rnn.pad_sequence(frames, True), lengths, torch.cat(letters), torch.tensor([len(x) for x in letters])


class Recogniser(nn.Module):
    def __init__(self):
        super().__init__()
        self.shorten = nn.Conv1d(40, 128, 5, stride=2, padding=2)
        self.rnn = nn.GRU(128, 128, num_layers=2, batch_first=True)
        self.head = nn.Linear(128, 28)

    def forward(self, frames):
        x = self.shorten(frames.transpose(1, 2)).relu().transpose(1, 2)
        return self.head(self.rnn(x)[0]).log_softmax(2)


def main():
    torch.manual_seed(0)
    loader = DataLoader(Utterances(480), batch_size=24, collate_fn=collate)
    model = Recogniser()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(2):
        losses = []
        for frames, lengths, letters, letter_lengths in loader:
            optimizer.zero_grad()
            scores = model(frames).transpose(0, 1)
            loss = nn.functional.ctc_loss(scores, letters, (lengths + 1) // 2, letter_lengths, zero_infinity=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.detach())
        print(f"epoch {epoch}: {torch.stack(losses).mean():.3f}")


main()
