"""One function per verb: facts, a pure decision, one transaction, and the wakes to send.

An operation writes and wakes nothing when it refuses. It returns an `Outcome`: the result
as JSON-ready data, the wakes that `bus.deliver` carries out after the commit, and, where
something is to be shown, the receipt that is settled after the flush.
"""
