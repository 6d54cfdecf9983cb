"""All SQL of the project, one file per family of tables, each beside its row type.

Functions take an open connection first and neither begin nor end transactions: that is
`bus.operations`' business, one transaction per verb, through `db.Write`.
"""
