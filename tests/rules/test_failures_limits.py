"""What the durations must be to one another, so that a lease never runs out by itself and a death is seen soon."""

from __future__ import annotations

from bus import limits


def test_a_guardian_renews_several_times_within_one_lease():
    assert limits.GUARDIAN_BEAT * 3 <= limits.LEASE


def test_a_holder_that_died_is_replaced_within_seconds():
    """Minutes of silence once stood between a death and the next one's turn."""
    assert limits.GONE_GRACE <= 15 * limits.SECOND
    assert limits.GUARDIAN_READY <= 5 * limits.SECOND
    assert limits.GUARDIAN_ADOPT <= 5 * limits.SECOND


def test_one_reading_is_no_proof():
    """Gone must also be silent, and longer where the process was only inferred."""
    assert limits.GONE_GRACE >= limits.SECOND
    assert limits.GONE_GRACE_INFERRED > limits.GONE_GRACE
    assert limits.GONE_GRACE_INFERRED < limits.LEASE


def test_who_reads_is_seen_long_before_it_looks_absent():
    assert limits.LAST_SEEN * 2 <= limits.BETWEEN_WAITS < limits.OWNER_IDLE < limits.PRESENCE
