"""Trains a transformer encoder that uses PyTorch's fused attention."""

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    embed = nn.Embedding(1000, 256)
    layer = nn.TransformerEncoderLayer(256, 8, 1024, dropout=0.0, batch_first=True, norm_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    head = nn.Linear(256, 1000)
    modules = nn.ModuleList([embed, encoder, head])
    optimizer = torch.optim.AdamW(modules.parameters(), lr=3e-4, fused=True)
    tokens = torch.randint(0, 1000, (32, 129))
    for step in range(16):
        batch = tokens[step % 8 * 4 : step % 8 * 4 + 4]
        scores = head(encoder(embed(batch[:, :-1])))
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(modules.parameters(), 1.0)
        optimizer.step()
        if step % 8 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


main()
