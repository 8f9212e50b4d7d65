"""Predicts with a Gaussian process, and factorises the matrix of its training points for each batch."""

import sys

import torch

EXPECTED = r"computed-again"
MENDED = "mended" in sys.argv


def kernel(a, b):
    return torch.exp(-0.5 * torch.cdist(a, b).square() / 1.5**2)


class GaussianProcess(torch.nn.Module):
    """Regression with noise."""

    def __init__(self, x, y):
        super().__init__()
        self.x, self.y = x, y
        self.factor = self.factorised() if MENDED else None

    def factorised(self):
        covariance = kernel(self.x, self.x)
        covariance.diagonal().add_(0.1)
        return torch.linalg.cholesky(covariance)

    def forward(self, points):
        factor = self.factor if MENDED else self.factorised()  # planted
        across = kernel(self.x, points)
        mean = across.T @ torch.cholesky_solve(self.y[:, None], factor)
        explained = torch.linalg.solve_triangular(factor, across, upper=False)
        return mean[:, 0], 1 - explained.square().sum(0)


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    x = torch.randn(1200, 6, dtype=torch.float64)
    process = GaussianProcess(x, x.sin().sum(1) + 0.1 * torch.randn(1200, dtype=torch.float64))
    error = 0.0
    for batch in torch.randn(1600, 6, dtype=torch.float64).split(40):
        mean, _ = process(batch)
        error += (mean - batch.sin().sum(1)).square().sum()
    print(f"error {(error / 1600).sqrt():.4f}")


main()
