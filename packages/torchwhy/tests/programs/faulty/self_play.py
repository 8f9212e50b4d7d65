"""Self-play with a tree search whose keys are `str(board)`: NumPy formats the array as text at each visit."""

import math
import sys

import numpy as np
import torch
from torch import nn

EXPECTED = r"between-steps-gap: .*return str\(board\).*Make that line cheaper"
MENDED = "mended" in sys.argv
N = 9


def key(board):
    if MENDED:
        return board.tobytes()
    return str(board)  # planted


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(N * N, 64), nn.ReLU())
        self.policy, self.value = nn.Linear(64, N * N), nn.Linear(64, 1)

    def forward(self, board):
        h = self.body(board)
        return self.policy(h), self.value(h).tanh().squeeze(-1)


class Search:
    def __init__(self, network):
        self.network = network
        self.visits, self.values, self.priors = {}, {}, {}

    def expand(self, board, k):
        with torch.no_grad():
            policy, value = self.network(torch.from_numpy(board)[None].float())
        self.priors[k] = policy[0].softmax(0).tolist()
        self.visits[k] = [0] * (N * N)
        self.values[k] = [0.0] * (N * N)
        return float(value)

    def visit(self, board, depth=0):
        k = key(board)
        if k not in self.priors:
            return -self.expand(board, k)
        if depth == 8:
            return 0.0
        visits, values, priors = self.visits[key(board)], self.values[key(board)], self.priors[key(board)]
        root = math.sqrt(1 + sum(visits))
        free = np.flatnonzero(board.ravel() == 0).tolist()
        move = max(free, key=lambda m: values[m] / (1 + visits[m]) + priors[m] * root / (1 + visits[m]))
        after = -board
        after.ravel()[move] = -1
        value = self.visit(after, depth + 1)
        visits[move] += 1
        values[move] += value
        return -value


def main():
    torch.manual_seed(0)
    network = Network()
    optimizer = torch.optim.Adam(network.parameters(), 1e-3)
    for _ in range(30):
        search = Search(network)
        board = np.zeros((N, N), dtype=np.int8)
        boards, policies = [], []
        for _ in range(4):
            for _ in range(40):
                search.visit(board)
            visits = np.array(search.visits[key(board)], dtype=np.float32)
            boards.append(board.copy())
            policies.append(visits / visits.sum())
            board = -board
            board.ravel()[int(visits.argmax())] = -1
        policy, value = network(torch.from_numpy(np.stack(boards)).float())
        loss = nn.functional.cross_entropy(policy, torch.from_numpy(np.stack(policies))) + value.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(float(loss))


main()
