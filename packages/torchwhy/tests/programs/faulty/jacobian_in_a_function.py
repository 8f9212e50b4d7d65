"""A softmax with a backward of its own that writes out the matrix of derivatives for each row."""

import sys

import torch
from torch import nn

EXPECTED = r"slow-custom-backward: .*closed form"
MENDED = "mended" in sys.argv


class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores):
        found = torch.exp(scores - scores.amax(-1, keepdim=True))
        found = found / found.sum(-1, keepdim=True)
        ctx.save_for_backward(found)
        return found

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        if MENDED:
            return y * (grad - (y * grad).sum(-1, keepdim=True))
        matrix = torch.diag_embed(y) - y.unsqueeze(-1) * y.unsqueeze(-2)  # planted
        return (matrix @ grad.unsqueeze(-1)).squeeze(-1)  # planted


def main():
    torch.manual_seed(0)
    encoder, decoder = nn.Linear(128, 3 * 128), nn.Linear(128, 128)
    optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.01)
    x = torch.randn(4, 96, 128)
    for _ in range(30):
        queries, keys, values = encoder(x).chunk(3, -1)
        loss = (decoder(Softmax.apply(queries @ keys.transpose(1, 2) / 12) @ values) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
