"""Generates text with a cache of keys and values that is allocated once."""

import torch
from torch import nn


class Block(nn.Module):
    """Causal attention and a feed-forward layer."""

    def __init__(self, width, heads, most):
        super().__init__()
        self.heads, self.cache = heads, None
        self.most = most
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.forward_layer = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, at):
        n, t, width = x.shape
        q, k, v = self.qkv(self.first(x)).view(n, t, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        if self.cache is None:
            self.cache = k.new_empty(2, n, self.heads, self.most, width // self.heads)
        self.cache[0, :, :, at : at + t], self.cache[1, :, :, at : at + t] = k, v
        k, v = self.cache[:, :, :, : at + t]
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
        x = x + self.out(y.transpose(1, 2).reshape(n, t, width))
        return x + self.forward_layer(self.second(x))


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    embed, head = nn.Embedding(2000, 384), nn.Linear(384, 2000)
    blocks = nn.ModuleList(Block(384, 6, 160) for _ in range(3)).eval()
    new = torch.randint(0, 2000, (48, 96))
    made, at = [new], 0
    for _ in range(60):
        x = embed(new)
        for block in blocks:
            x = block(x, at)
        at += new.shape[1]
        new = head(x[:, -1]).argmax(1, keepdim=True)
        made.append(new)
    print(f"{torch.cat(made, 1).shape[1]} words for each of 48 texts")


main()
