"""Runs small pieces of code that use ``kopf`` as public operators do, and prints what they give.

    python compat/usages.py > compat/usages-1.45.2.json

Run it with the original Kopf to renew the file that ``tests/test_usages.py`` compares with. Each
piece is one line of ``usages.txt``: statements, and an expression at the end whose value counts.
An error counts too: its class, and its text unless that is about what is missing where.
"""

from __future__ import annotations

import ast
import json
import pathlib
import re
import warnings
from typing import Any

PIECES = pathlib.Path(__file__).parent / "usages.txt"
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_MISSING = (ImportError, AttributeError, NameError)


def pieces() -> list[str]:
    """Read the pieces of code; lines with ``#`` are headings."""
    lines = PIECES.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def outcome(code: str) -> str:
    """Run one piece of code, and describe its value or its error."""
    tree = ast.parse(code)
    last = tree.body.pop()
    names: dict[str, Any] = {}
    try:
        with warnings.catch_warnings(record=True) as noted:
            warnings.simplefilter("always")
            exec(compile(tree, "<usage>", "exec"), names)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), "<usage>", "eval"), names)
            else:
                exec(compile(ast.Module([last], []), "<usage>", "exec"), names)
                value = "done"
    except _MISSING as e:
        return type(e).__name__
    except Exception as e:
        return _ADDRESS.sub("", f"{type(e).__name__}: {e}")
    text = _ADDRESS.sub("", value if isinstance(value, str) else repr(value))
    kinds = sorted({w.category.__name__ for w in noted if "kopf" in str(w.message).lower()})
    return f"{text} ({', '.join(kinds)})" if kinds else text


if __name__ == "__main__":
    print(json.dumps({code: outcome(code) for code in pieces()}, indent=1))
