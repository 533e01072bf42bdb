#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Checks that every file says its licence in its first line, in the form that its kind asks for.

    spdx.py ROOT
"""

import os
import sys

import tree

LINE = "SPDX-License-Identifier: GPL-2.0"

# How the line begins: by suffix, or by the whole name.
FORMS = {
    ".rs": "// ",
    ".c": "// ",
    ".h": "/* ",
    ".sh": "# ",
    ".py": "# ",
    ".toml": "# ",
    ".config": "# ",
    ".rst": ".. ",
    "Makefile": "# ",
    "Kbuild": "# ",
}


def form_of(file):
    """The beginning of the licence line of a file; None if it needs none."""
    name = os.path.basename(file)
    return FORMS.get(name) or FORMS.get(os.path.splitext(name)[1])


def check(root):
    """All problems of a source tree."""
    problems = []
    for file in tree.files(root):
        form = form_of(file)
        if form is None:
            continue
        lines = tree.read(root, file).split("\n", 2)
        first = lines[1] if lines[0].startswith("#!") and len(lines) > 1 and form == "# " else lines[0]
        if not first.startswith(form + LINE):
            problems.append(f"{file}: the first line is not '{form}{LINE}'")
    return problems


if __name__ == "__main__":
    sys.exit(tree.report(check(sys.argv[1])))
