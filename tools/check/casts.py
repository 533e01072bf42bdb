#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Checks that each `as` in the module says why it loses nothing.

    casts.py ROOT

The reason is a `// CAST:` in the lines right above, or in the same paragraph. Tests are exempt, and `as` in a `use` is no cast.
"""

import re
import sys

import tree

CAST = re.compile(r"\bas\s+(?:[ui](?:8|16|32|64|128|size)\b|\*(?:mut|const)\b|_(?!\w)|(?:\w+::)+\w+)")
USE = re.compile(r"\buse\s[^;]*;")

# How many lines above a cast its reason may stand in any case.
REACH = 5


def has_reason(lines):
    """Whether the last of the lines has its reason."""
    for distance, line in enumerate(reversed(lines)):
        if "CAST:" in line:
            return True
        if distance >= REACH and not line.strip():
            return False
    return False


def check(root):
    """All problems of a source tree."""
    problems = []
    for file, text in tree.production(root):
        code = USE.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), tree.rust_code(text))
        lines = text.splitlines()
        for found in CAST.finditer(code):
            line = tree.line_of(code, found.start())
            if not has_reason(lines[:line]):
                problems.append(f"{file}:{line}: a cast without its reason: {lines[line - 1].strip()}")
    return problems


if __name__ == "__main__":
    sys.exit(tree.report(check(sys.argv[1])))
