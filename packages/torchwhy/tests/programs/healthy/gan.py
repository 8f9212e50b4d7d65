"""Trains a generator and a discriminator in turn."""

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    generator = nn.Sequential(
        nn.Linear(64, 512), nn.LeakyReLU(0.2), nn.Linear(512, 1024), nn.LeakyReLU(0.2), nn.Linear(1024, 784)
    )
    critic = nn.Sequential(
        nn.Linear(784, 1024), nn.LeakyReLU(0.2), nn.Linear(1024, 512), nn.LeakyReLU(0.2), nn.Linear(512, 1)
    )
    of_generator = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999), fused=True)
    of_critic = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999), fused=True)
    images = torch.rand(4096, 784)
    for step in range(30):
        real = images[step * 256 % 4096 :][:256]
        made = generator(torch.randn(256, 64))
        loss = nn.functional.softplus(-critic(real)).mean() + nn.functional.softplus(critic(made.detach())).mean()
        of_critic.zero_grad()
        loss.backward()
        of_critic.step()
        critic.requires_grad_(False)
        fooled = nn.functional.softplus(-critic(made)).mean()
        critic.requires_grad_(True)
        of_generator.zero_grad()
        fooled.backward()
        of_generator.step()
    print(f"losses {loss.item():.3f} and {fooled.item():.3f}")


main()
