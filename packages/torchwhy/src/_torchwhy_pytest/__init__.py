"""What pytest loads when it starts: the fixture `profile_gate`, and nothing else.

It lies outside of the package `torchwhy` so that pytest's start imports neither that nor PyTorch; the gate itself is
`torchwhy.pytest_plugin`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from torchwhy.pytest_plugin import ProfileGate

__all__ = ["profile_gate"]


@pytest.fixture
def profile_gate(request: pytest.FixtureRequest) -> ProfileGate:
    """Budgets for a block: `with profile_gate(syncs__eq=0, kernel_launches__max=12): step()`."""
    from torchwhy.pytest_plugin import ProfileGate

    return ProfileGate(request.config.rootpath)
