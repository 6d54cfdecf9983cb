"""`bus.quickjson` answers as `json` does, without loading it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bus import digest, quickjson
from tests.kit.world import ROOT

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters())
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)
OPTIONS = st.fixed_dictionaries(
    {
        "ensure_ascii": st.booleans(),
        "separators": st.sampled_from([(",", ":"), (", ", ": ")]),
        "sort_keys": st.booleans(),
        "indent": st.sampled_from([None, None, 1]),
    }
)


def outcome(function, *args, **named):
    """The answer, or the kind of error and its words."""
    try:
        return repr(function(*args, **named))  # repr: nan is not equal to itself
    except (ValueError, TypeError) as error:
        return type(error), str(error)


@given(VALUES, OPTIONS)
def test_dumps_writes_the_same(value, options):
    assert quickjson.dumps(value, **options) == json.dumps(value, **options)


@given(VALUES)
def test_loads_reads_back_what_was_written(value):
    assert quickjson.loads(quickjson.dumps(value)) == value


@given(st.text(st.sampled_from('{}[]",:0123456789.eE+- \t\n\r\x0b\xa0\\untrefalsNI"'), max_size=12))
@example(' {"a": 1}\n')
@example("NaN")
@example("-Infinity")
@example("\ufeff1")
@example('"\t"')
@example('{"a": 1, "a": 2}')
@example("1 2")
@example("")
def test_loads_reads_and_refuses_the_same(text):
    assert outcome(quickjson.loads, text) == outcome(json.loads, text)


@pytest.mark.parametrize(
    "value", [{1, 2}, b"x", object, {(1, 2): 3}, float("nan"), {1: 2, None: 3, False: 4}, "é", 10**30]
)
def test_dumps_refuses_and_converts_the_same(value):
    assert outcome(quickjson.dumps, value) == outcome(json.dumps, value)


def test_a_circle_is_refused():
    circle: list = []
    circle.append(circle)
    with pytest.raises(ValueError, match="Circular"):
        quickjson.dumps(circle)


def test_without_the_c_parts_json_does_it(monkeypatch):
    monkeypatch.setattr(quickjson, "_scan", None)
    monkeypatch.setattr(quickjson, "make_encoder", None)
    assert quickjson.loads('{"a": [1]}') == {"a": [1]}
    assert quickjson.dumps({"a": [1, "é"]}, ensure_ascii=False, separators=(",", ":")) == '{"a":[1,"é"]}'


def test_neither_loads_what_it_replaces():
    code = f"import sys; sys.path.insert(0, {ROOT!r}); from bus import digest, quickjson\n"
    code += "assert quickjson.loads(quickjson.dumps({'a': [1.5, 'é']})) == {'a': [1.5, 'é']}\n"
    code += "assert digest.digest(b'') == 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'\n"
    code += "assert not {'json', 're', 'enum', 'hashlib', '_hashlib'} & set(sys.modules), sys.modules"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_digest_is_sha256():
    assert digest.digest(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
