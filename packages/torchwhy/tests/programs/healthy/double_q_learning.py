"""Trains by double Q-learning, with a replay buffer of preallocated tensors and a target network."""

import torch
from torch import nn


class Replay:
    def __init__(self, capacity, observation):
        self.now = torch.zeros(capacity, observation)
        self.next = torch.zeros(capacity, observation)
        self.action = torch.zeros(capacity, dtype=torch.long)
        self.reward = torch.zeros(capacity)
        self.done = torch.zeros(capacity)
        self.capacity, self.size, self.position = capacity, 0, 0

    def add(self, now, action, reward, following, done):
        rows = torch.arange(self.position, self.position + len(now)) % self.capacity
        self.now[rows], self.next[rows], self.action[rows] = now, following, action
        self.reward[rows], self.done[rows] = reward, done
        self.position = (self.position + len(now)) % self.capacity
        self.size = min(self.size + len(now), self.capacity)

    def sample(self, count):
        rows = torch.randint(0, self.size, (count,))
        return self.now[rows], self.action[rows], self.reward[rows], self.next[rows], self.done[rows]


def network():
    return nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 6))


def main():
    torch.manual_seed(0)
    online, target = network(), network()
    target.load_state_dict(online.state_dict())
    target.requires_grad_(False)
    optimizer = torch.optim.Adam(online.parameters(), lr=3e-4)
    replay = Replay(20000, 32)
    state = torch.randn(64, 32)
    drift = torch.randn(6, 32) * 0.1
    for step in range(500):
        with torch.no_grad():
            greedy = online(state).argmax(1)
        action = torch.where(torch.rand(64) < 0.1, torch.randint(0, 6, (64,)), greedy)
        following = 0.95 * state + drift[action] + 0.1 * torch.randn(64, 32)
        done = (torch.rand(64) < 0.01).float()
        replay.add(state, action, -following.square().mean(1), following, done)
        state = torch.where(done[:, None] > 0, torch.randn(64, 32), following)

        now, action, reward, following, done = replay.sample(512)
        with torch.no_grad():
            best = online(following).argmax(1, keepdim=True)
            goal = reward + 0.99 * (1 - done) * target(following).gather(1, best).squeeze(1)
        value = online(now).gather(1, action[:, None]).squeeze(1)
        loss = nn.functional.smooth_l1_loss(value, goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 4 == 0:
            torch._foreach_lerp_(list(target.parameters()), list(online.parameters()), 0.02)
        if step % 100 == 0:
            print(f"step {step}: {loss.item():.4f}")


main()
