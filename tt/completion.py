"""`tt completion bash|zsh|fish`: click's own completion scripts."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def run(args: dict[str, Any]) -> int:
    """Print the script. Text, whoever calls: a shell reads it."""
    from click import shell_completion

    from tt import output
    from tt.app import Words

    kind = shell_completion.get_completion_class(args["shell"])
    if kind is None:  # the table offers only shells that click knows
        raise LookupError(args["shell"])
    maker = kind(Words((), lambda _command, _args: 0), {}, "tt", "_TT_COMPLETE")
    # Not `maker.source()`: for bash that starts a bash to look at its version.
    output.plain(maker.source_template % maker.source_vars())
    return 0
