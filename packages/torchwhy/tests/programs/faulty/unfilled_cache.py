"""Completes prompts; attention reads 2048 positions of the preallocated cache, of which at most 96 are filled."""

import sys

import torch
from torch import nn

EXPECTED = r"unfilled-cache"
MENDED = "mended" in sys.argv
WIDTH, HEADS, MAXIMUM = 256, 4, 2048


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, cache, position, mask):
        batch = x.shape[0]
        q, k, v = self.qkv(self.norm1(x)).view(batch, 1, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        cache[0][:, :, position : position + 1] = k
        cache[1][:, :, position : position + 1] = v
        if MENDED:
            keys, values = cache[0][:, :, : position + 1], cache[1][:, :, : position + 1]
            y = nn.functional.scaled_dot_product_attention(q, keys, values)
        else:
            y = nn.functional.scaled_dot_product_attention(q, cache[0], cache[1], attn_mask=mask)  # planted
        x = x + self.out(y.transpose(1, 2).reshape(batch, 1, WIDTH))
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self, words=2000, layers=4):
        super().__init__()
        self.embedding = nn.Embedding(words, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(layers))
        self.head = nn.Linear(WIDTH, words)

    def new_caches(self, batch):
        shape = (batch, HEADS, MAXIMUM, WIDTH // HEADS)
        return [(torch.zeros(shape), torch.zeros(shape)) for _ in self.blocks]

    def forward(self, token, caches, position):
        mask = (torch.arange(MAXIMUM) <= position)[None, None, None]
        x = self.embedding(token)
        for block, cache in zip(self.blocks, caches, strict=True):
            x = block(x, cache, position, mask)
        return self.head(x[:, -1])


@torch.inference_mode()
def complete(model, prompts, length):
    caches = model.new_caches(len(prompts))
    token = prompts[:, :1]
    for position in range(length):
        logits = model(token, caches, position)
        token = prompts[:, position + 1 : position + 2] if position + 1 < prompts.shape[1] else logits.argmax(1, True)
    return token


def main():
    torch.manual_seed(0)
    model = Model().eval()
    for request in range(3):
        last = complete(model, torch.randint(0, 2000, (8, 16)), 96)
        print(request, last[:4, 0].tolist())


main()
