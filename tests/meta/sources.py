"""The source files of the packages, parsed once."""

from __future__ import annotations

import ast
import functools
import os

from tests.kit.world import ROOT

PACKAGES = ("tt", "bus", "hooks", "monitor")


@functools.cache
def sources() -> dict[str, str]:
    """Path below the repository → text, for every Python file of the packages."""
    found = {}
    for package in PACKAGES:
        for folder, _, names in os.walk(os.path.join(ROOT, package)):
            for name in names:
                if name.endswith(".py"):
                    path = os.path.join(folder, name)
                    with open(path, encoding="utf-8") as file:
                        found[os.path.relpath(path, ROOT).replace(os.sep, "/")] = file.read()
    return dict(sorted(found.items()))


@functools.cache
def trees() -> dict[str, ast.Module]:
    """The same, parsed."""
    return {path: ast.parse(text, path) for path, text in sources().items()}


def module_name(path: str) -> str:
    """bus/store/db.py → bus.store.db"""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def docstrings(tree: ast.Module) -> set[int]:
    """Identities of the nodes that are docstrings."""
    return {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
        and isinstance(node.body[0].value, ast.Constant)
    }
