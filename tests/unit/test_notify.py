"""Notify lines: whatever goes in, one harmless line comes out."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bus import limits, notify

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ANY = st.text(st.characters())  # surrogates, controls, unassigned: all of them
NASTY = st.text(
    st.sampled_from(
        "a \t\n\r\v\f\x00\x1b\x7f\x85\u2028\u2029\u200b\u200d\u2060\ufeff\u202e\u2066\u061c\xad"
        "é€😀\ud800\ufe0f\U000e0041"
    ),
    max_size=900,
)
AT = st.integers(0, 253_402_300_799_999)
INVISIBLE = (
    "\u034f\u115f\u1160\u17b4\u180b\u180e\u200b\u200c\u200d\u2060\u2800\u3164\ufe0f\ufeff\uffa0\U000e0100\U000e0041"
)


def check(data):
    assert len(data) <= limits.NOTIFY_BYTES
    text = data.decode()
    assert text.endswith("\n")
    assert text.count("\n") == 1
    assert len(text.splitlines()) == 1
    assert text.count("\t") == 2
    for char in text[:-1].replace("\t", ""):
        assert unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Zl", "Zp"}
        assert char not in INVISIBLE
    at, sender, subject = text[:-1].split("\t")
    assert len(at) == 24
    assert at.endswith("Z")
    assert sender
    assert len(sender.encode()) <= 128
    assert subject == subject.strip()
    return sender, subject


@given(AT, ANY | NASTY, ANY | NASTY)
@example(0, "a" * 1000, "b" * 100_000)
@example(0, "€" * 400, "😀" * 400)
@example(0, "\n", "\n\nroom\tagent\tforged")
def test_always_one_harmless_line(at, sender, subject):
    check(notify.line(at, sender, subject))


@given(st.integers(0, 480), st.sampled_from(["é", "€", "😀", "e\u0301"]))
def test_every_cut_is_at_a_character_border(offset, char):
    _sender, subject = check(notify.line(1, "s", "x" * offset + char * 480))
    assert set(subject) <= set("x…" + char)
    assert subject.endswith("…")


def test_it_reads_well():
    data = notify.line(1_700_000_000_123, "claude:1a2b3c4d", "Fix the  build\nplease\u202e now")
    assert data == b"2023-11-14T22:13:20.123Z\tclaude:1a2b3c4d\tFix the build please now\n"


def test_plain_text_of_the_world_stays():
    for text in ("naïve café", "日本語のテキスト", "привет", "שלום", "مرحبا", "😀 ok", "a\u0301b"):
        assert notify.fold(text) == text


@pytest.mark.parametrize("char", INVISIBLE)
def test_the_invisible_becomes_a_space(char):
    assert notify.fold(f"ad{char}min") == "ad min"


def test_a_line_that_just_fits_is_whole():
    empty = len(notify.line(0, "s", ""))
    room = limits.NOTIFY_BYTES - empty
    assert notify.line(0, "s", "x" * room).endswith(b"\t" + b"x" * room + b"\n")
    assert notify.line(0, "s", "x" * (room + 1)).endswith("…\n".encode())


def test_nobody_is_a_question_mark():
    assert check(notify.line(0, "\u200b", ""))[0] == "?"


def test_append(tmp_path):
    path = str(tmp_path / "a.notify")
    assert notify.append(path, b"")
    assert os.path.getsize(path) == 0
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert notify.append(path, b"one\n")
    assert notify.append(path, b"two\n")
    assert (tmp_path / "a.notify").read_bytes() == b"one\ntwo\n"


def test_append_answers_false_where_it_cannot(tmp_path):
    assert not notify.append(str(tmp_path / "none" / "a.notify"), b"x\n")
    assert not notify.append(str(tmp_path), b"x\n")


def test_a_line_torn_by_a_full_disk_spoils_no_other(tmp_path):
    path = tmp_path / "a.notify"
    path.write_bytes(b"one\ntor")
    os.utime(path, (1, 1))
    assert notify.append(str(path), b"two\n")
    assert notify.append(str(path), b"three\n")
    assert path.read_bytes() == b"one\ntor\ntwo\nthree\n"


def test_a_line_in_the_middle_of_being_written_is_not_torn(tmp_path):
    path = tmp_path / "a.notify"
    path.write_bytes(b"one\nbeg")
    assert notify.append(str(path), b"two\n")
    assert path.read_bytes() == b"one\nbegtwo\n"


def test_a_short_write_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "write", lambda fd, data: 1)
    assert not notify.append(str(tmp_path / "a.notify"), b"x\n")


def test_a_full_disk_is_told(tmp_path):
    code = (
        "import resource, signal, sys; from bus import notify\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (6, resource.RLIM_INFINITY))\n"
        "print(notify.append(sys.argv[1], b'one\\n'), notify.append(sys.argv[1], b'two\\n'))"
    )
    assert hasattr(resource, "RLIMIT_FSIZE")
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "a.notify")],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": ROOT},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "True False\n"


def test_lines_of_many_processes_stay_whole(tmp_path):
    path = str(tmp_path / "a.notify")
    code = (
        "import sys; from bus import notify\n"
        "for i in range(500):\n"
        "    assert notify.append(sys.argv[1], notify.line(i, sys.argv[2], sys.argv[2] * 300))"
    )
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": ROOT}
    children = [subprocess.Popen([sys.executable, "-c", code, path, name], env=env) for name in "abcd"]
    assert [child.wait() for child in children] == [0] * 4
    with open(path, "rb") as file:
        lines = file.readlines()
    assert len(lines) == 2000
    for data in lines:
        sender, subject = check(data)
        assert set(subject) == {sender}
