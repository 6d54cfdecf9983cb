"""Thin handlers, one module per family: `def name(args) -> int`.

`args` is what `tt.table.finish` returns. A handler turns words into the arguments of one
operation and hands it to `tt.run`; it decides nothing that the bus must keep true.
"""
