"""Generates text by running the whole prefix through the model for every new word; keys and values aren't kept."""

import sys

import torch
from torch import nn

EXPECTED = r"cache|prefix|past_key_values"
MENDED = "mended" in sys.argv


class Block(nn.Module):
    """Causal attention and a feed-forward layer."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.cache = heads, None
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.forward_layer = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        n, t, width = x.shape
        q, k, v = self.qkv(self.first(x)).view(n, t, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        if MENDED:
            if self.cache is not None:
                k, v = torch.cat([self.cache[0], k], 2), torch.cat([self.cache[1], v], 2)
            self.cache = k, v
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
        x = x + self.out(y.transpose(1, 2).reshape(n, t, width))
        return x + self.forward_layer(self.second(x))


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    embed, head = nn.Embedding(500, 128), nn.Linear(128, 500)
    blocks = nn.Sequential(*(Block(128, 4) for _ in range(3))).eval()
    words = torch.randint(0, 500, (4, 64))
    new = words
    for _ in range(40):
        states = blocks(embed(new if MENDED else words))  # planted
        new = head(states[:, -1]).argmax(1, keepdim=True)
        words = torch.cat([words, new], 1)
    print(f"{words.shape[1]} words, the last {words[0, -3:].tolist()}")


main()
