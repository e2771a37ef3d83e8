"""Compares the text of this package with Kopf's, to see that our code is our own.

    python compat/originality.py /path/to/kopf-1.45.2/kopf [--show]

A finding is a run of at least six equal lines of which at least three are code of function bodies.
Signatures, imports, declarations of fields, docstrings, decorators, and assignments of arguments to
attributes of the same name do not count: they are the interface, and must be equal.
"""

from __future__ import annotations

import argparse
import ast
import collections
import pathlib
import re
import sys

LENGTH = 6
SUBSTANCE = 3
OURS = pathlib.Path(__file__).parent.parent / "kopf"
TRIVIAL = re.compile(
    r"[\])}\"',:.\s]*"
    r"|self\.(\w+)( *: *[^=]+)? = \1"
    r"|(\w+)=\3,?"
    r"|(raise NotImplementedError|pass|return|\.\.\.|else:|try:|finally:|return self)(\(\))?"
)

Line = tuple[int, str, bool]


def interface(tree: ast.AST) -> set[int]:
    """Find the lines that belong to the interface."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update(range(node.lineno, (node.end_lineno or 0) + 1))
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            found.update(range(first, node.body[0].lineno))
            for statement in node.body:
                text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
                field = isinstance(node, ast.ClassDef) and isinstance(
                    statement, (ast.AnnAssign, ast.Assign)
                )
                if text or field:
                    found.update(range(statement.lineno, (statement.end_lineno or 0) + 1))
        elif isinstance(node, ast.Module):
            for statement in node.body:
                if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Expr)):
                    found.update(range(statement.lineno, (statement.end_lineno or 0) + 1))
    return found


def read(path: pathlib.Path) -> list[Line]:
    """Read the lines of a file: their numbers, their text, and whether they count."""
    text = path.read_text(encoding="utf-8")
    skipped = interface(ast.parse(text))
    lines = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip().replace("'", '"')
        if line and not line.startswith("#"):
            counts = number not in skipped and not TRIVIAL.fullmatch(line)
            lines.append((number, line, counts))
    return lines


def compare(theirs: pathlib.Path, show: bool) -> int:
    """Print all findings, and return how many lines they have."""
    kopf = {path: read(path) for path in sorted(theirs.rglob("*.py"))}
    index: dict[tuple[str, ...], list[tuple[pathlib.Path, int]]] = collections.defaultdict(list)
    for path, lines in kopf.items():
        for k in range(len(lines) - LENGTH + 1):
            index[tuple(text for _, text, _ in lines[k : k + LENGTH])].append((path, k))
    runs = total = 0
    for path in sorted(OURS.rglob("*.py")):
        lines = read(path)
        k = 0
        while k <= len(lines) - LENGTH:
            best, source = 0, None
            for other, j in index.get(tuple(t for _, t, _ in lines[k : k + LENGTH]), ()):
                pairs = zip(lines[k:], kopf[other][j:], strict=False)
                length = next((n for n, (a, b) in enumerate(pairs) if a[1] != b[1]), best)
                if length > best:
                    best, source = length, f"{other.relative_to(theirs)}:{kopf[other][j][0]}"
            run = lines[k : k + best]
            substance = sum(counts for _, _, counts in run)
            if substance >= SUBSTANCE:
                runs += 1
                total += substance
                print(f"{path.relative_to(OURS)}:{run[0][0]}-{run[-1][0]} like {source}")
                if show:
                    print("".join(f"    {'*' if c else ' '} {t}\n" for _, t, c in run), end="")
            k += max(best, 1)
    print(f"{runs} runs, {total} lines of code")
    return runs


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("kopf", type=pathlib.Path, help="the package in the sdist of Kopf")
    parser.add_argument("--show", action="store_true", help="print the equal lines")
    options = parser.parse_args()
    return 1 if compare(options.kopf, options.show) else 0


if __name__ == "__main__":
    sys.exit(main())
