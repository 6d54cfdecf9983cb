"""The `desk` fixture: one bus in this process, checked at the end."""

from __future__ import annotations

import pytest

from tests.kit.desk import Desk


@pytest.fixture
def desk(tmp_path, monkeypatch):
    made = Desk(tmp_path, monkeypatch)
    yield made
    made.close()
    made.check()
