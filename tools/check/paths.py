#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Checks that the documentation names only files and documents that exist.

    paths.py ROOT

Looked at are links, and names in double backquotes (reST) or backquotes (Markdown) that begin like a path of the
repository.
"""

import os
import re
import sys

import tree

TOPS = "rust|tools|include|Documentation|Makefile|Kbuild|COPYING"
NAMED = re.compile(rf"`((?:{TOPS})(?:/[\w./-]*)?)`")
LINKS = {".md": re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)"), ".rst": re.compile(r"<([\w./-]+\.\w+)>`_")}


def check(root):
    """All problems of a source tree."""
    problems = []
    for file in tree.files(root, *LINKS):
        text = tree.read(root, file)
        for found in NAMED.finditer(text):
            if not os.path.exists(os.path.join(root, found.group(1))):
                problems.append(f"{file}:{tree.line_of(text, found.start())}: there is no {found.group(1)}")
        for found in LINKS[os.path.splitext(file)[1]].finditer(text):
            if not os.path.exists(os.path.join(root, os.path.dirname(file), found.group(1))):
                problems.append(f"{file}:{tree.line_of(text, found.start())}: the link {found.group(1)} leads nowhere")
    return problems


if __name__ == "__main__":
    sys.exit(tree.report(check(sys.argv[1])))
