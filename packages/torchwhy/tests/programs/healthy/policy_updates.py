"""Trains a policy (PPO): a rollout in a batch of environments, then several updates, of which one waits for it."""

import torch
from torch import nn

ENVIRONMENTS, HORIZON = 256, 64


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(4, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh())
        self.policy, self.value = nn.Linear(128, 2), nn.Linear(128, 1)

    def forward(self, x):
        hidden = self.trunk(x)
        return self.policy(hidden), self.value(hidden).squeeze(-1)


def swing(state, action):
    """Pendulums at the end of carts, all at once."""
    angle, speed, place, drift = state.unbind(1)
    force = torch.where(action == 1, 1.0, -1.0)
    speed = speed + 0.05 * (angle.sin() - 0.5 * force * angle.cos())
    drift = drift + 0.05 * force
    return torch.stack([angle + 0.05 * speed, speed, place + 0.05 * drift, drift], 1)


@torch.no_grad()
def rollout(agent, state):
    states = torch.empty(HORIZON, ENVIRONMENTS, 4)
    actions = torch.empty(HORIZON, ENVIRONMENTS, dtype=torch.long)
    chances, rewards = torch.empty(HORIZON, ENVIRONMENTS), torch.empty(HORIZON, ENVIRONMENTS)
    for t in range(HORIZON):
        states[t] = state
        logs = agent(state)[0].log_softmax(-1)
        actions[t] = torch.multinomial(logs.exp(), 1).squeeze(1)
        chances[t] = logs.gather(1, actions[t, :, None]).squeeze(1)
        state = swing(state, actions[t])
        rewards[t] = state[:, 0].cos()
    returns = rewards.flip(0).cumsum(0).flip(0) / HORIZON
    return [x.flatten(0, 1) for x in (states, actions, chances, returns)], state


def main():
    torch.manual_seed(0)
    agent, state = Agent(), torch.randn(ENVIRONMENTS, 4) / 10
    optimizer = torch.optim.Adam(agent.parameters(), lr=3e-4, fused=True)
    for _ in range(6):
        data, state = rollout(agent, state)
        for index in torch.randperm(ENVIRONMENTS * HORIZON).split(2048):
            states, actions, chances, returns = (x[index] for x in data)
            logits, values = agent(states)
            ratio = (logits.log_softmax(-1).gather(1, actions[:, None]).squeeze(1) - chances).exp()
            advantage = returns - values.detach()
            policy = -torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
            loss = policy + (values - returns).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"return {data[3].mean().item():.3f}")


main()
