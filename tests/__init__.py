"""Tests of Talking Stick: `python -m tests fast | full | lint | types | bench | clients`."""
