"""`python -m tt`: the same as the console script."""

from __future__ import annotations

from tt.main import start

if __name__ == "__main__":
    start()
