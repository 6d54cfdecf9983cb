"""Long-lived processes and watching: the wait loop, the guardian, followers.

Imports `bus` and nothing else of ours.
"""
