from __future__ import annotations

from collections.abc import Iterator

import pytest
from support import Service, service


@pytest.fixture(scope="session")
def served() -> Iterator[Service]:
    with service() as served:
        yield served
