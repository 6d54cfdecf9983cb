"""A group alone means its list, for both readers alike; its help stays its help."""

from __future__ import annotations

import pytest

from tt import table, table_tasks


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ("tickets", "tickets list"),
        ("stations --json", "stations list --json"),
        ("--json asks", "--json asks list"),
        ("asks --human", "asks list --human"),
        ("tickets --state queued --mine", "tickets list --state queued --mine"),
        ("notes --after 3", "notes list --after 3"),
        ("tickets --mine", "tickets list --mine"),
        ("--agent a:b notes", "--agent a:b notes list"),
        ("--agent=a:b notes", "--agent=a:b notes list"),
        ("notes --path /x", "notes list --path /x"),
        ("notes --path /x add hello", None),
        ("notes add tickets", None),
        ("config", "config list"),
        ("config get topology", None),
        ("tickets show t1", None),
        ("tickets nonsense", None),
        ("tickets --help", None),
        ("-h", None),
        ("msg", None),
        ("msg send room tickets", None),
        ("--agent tickets", None),
        ("", None),
        ("-- tickets", None),
    ],
)
def test_expand(argv, expected):
    words = argv.split()
    assert table.expand(words) == (words if expected is None else expected.split())


def test_every_group_with_a_list_is_one_of_them():
    lists = {command.words[0] for command in table.COMMANDS if command.words[1:] == ("list",)}
    assert lists == set(table_tasks.LISTS)
