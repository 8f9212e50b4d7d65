"""Reinforcement learning: 512 environments move at once, and a policy is trained on what they met."""

import torch
from torch import nn


class Carts:
    """Many carts that balance a pole; an approximation of the well-known environment."""

    def __init__(self, count):
        self.state = 0.05 * torch.randn(count, 4)

    def step(self, action):
        x, v, angle, turn = self.state.unbind(1)
        force = 20.0 * action - 10
        pull = (9.8 * angle.sin() - angle.cos() * force / 1.1) / 0.6
        moved = torch.stack([x + 0.02 * v, v + 0.02 * force / 1.1, angle + 0.02 * turn, turn + 0.02 * pull], 1)
        ended = (x.abs() > 2.4) | (angle.abs() > 0.2)
        self.state = torch.where(ended[:, None], 0.05 * torch.randn_like(moved), moved)
        return self.state, 1.0 - ended.float()


def main():
    torch.manual_seed(0)
    policy = nn.Sequential(nn.Linear(4, 512), nn.Tanh(), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    carts = Carts(512)
    state = carts.state
    for turn in range(16):
        states, actions, rewards = [], [], []
        with torch.no_grad():
            for _ in range(16):
                action = policy(state).softmax(1).multinomial(1)[:, 0]
                states.append(state)
                actions.append(action)
                state, reward = carts.step(action)
                rewards.append(reward)
        gains = torch.stack(rewards).flip(0).cumsum(0).flip(0)
        gains = (gains - gains.mean()) / (gains.std() + 1e-6)
        scores = policy(torch.cat(states)).log_softmax(1)
        loss = -(scores.gather(1, torch.cat(actions)[:, None])[:, 0] * gains.flatten()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if turn % 8 == 7:
            print(f"turn {turn}: mean reward {torch.stack(rewards).mean().item():.3f}")


main()
