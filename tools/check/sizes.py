#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Checks the length of source files: 600 lines need a reason, 400 ask for the second concept.

    sizes.py ROOT

The headers in include/ are exempt: an interface is one file, however long. The reason stands in the comment that opens the file, as a line `Size: why this is one concept.`
"""

import re
import sys

import tree

LONG = 400
TOO_LONG = 600
SOURCES = (".rs", ".c", ".h", ".sh", ".py")

# Leading lines that belong to the opening comment of a file.
OPENING = re.compile(r"(?:(?://|\s*\*|#|\"\"\"|/\*|\s*$)[^\n]*\n)*(?:\"\"\".*?\"\"\")?", re.DOTALL | re.MULTILINE)


def check(root):
    """The problems and the notes of a source tree."""
    problems, notes = [], []
    for file in tree.files(root, *SOURCES):
        if file.startswith("include/"):
            continue
        text = tree.read(root, file)
        count = text.count("\n")
        if count > TOO_LONG:
            if not re.search(r"\bSize: \w", OPENING.match(text).group()):
                problems.append(f"{file}: {count} lines without a reason ('Size: …' in the opening comment)")
        elif count > LONG:
            notes.append(f"{file}: {count} lines, look for the second concept")
    return problems, notes


if __name__ == "__main__":
    sys.exit(tree.report(*check(sys.argv[1])))
