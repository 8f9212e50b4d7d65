"""Looks for a customer's purchases in the whole table, for each sample."""

import sys

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

EXPECTED = r"dataloader-wait: .*self\.purchases\[.*groupby"
MENDED = "mended" in sys.argv


class Histories(Dataset):
    def __init__(self, purchases, length=20):
        self.purchases = purchases
        self.customers = purchases["customer"].unique()
        self.length = length
        if MENDED:
            self.by_customer = {c: g.to_numpy() for c, g in purchases.groupby("customer")["product"]}

    def __len__(self):
        return len(self.customers)

    def __getitem__(self, index):
        customer = self.customers[index]
        if MENDED:
            products = self.by_customer[customer]
        else:
            products = self.purchases[self.purchases["customer"] == customer]["product"].to_numpy()  # planted
        products = products[-self.length - 1 :]
        history = np.zeros(self.length, dtype=np.int64)
        history[: len(products) - 1] = products[:-1]
        return torch.from_numpy(history), int(products[-1])


class NextProduct(nn.Module):
    def __init__(self, products):
        super().__init__()
        self.embed = nn.Embedding(products, 48, padding_idx=0)
        self.rnn = nn.GRU(48, 64, batch_first=True)
        self.out = nn.Linear(64, products)

    def forward(self, history):
        _, state = self.rnn(self.embed(history))
        return self.out(state[0])


def main():
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    n = 300_000
    purchases = pd.DataFrame(
        {
            "customer": rng.integers(0, 15000, n),
            "product": rng.integers(1, 1000, n),
            "price": rng.random(n),
        }
    )
    loader = DataLoader(Histories(purchases), batch_size=64, shuffle=True)
    model = NextProduct(1000)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for step, (history, target) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(history), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 150:
            break
    print(float(loss))


main()
