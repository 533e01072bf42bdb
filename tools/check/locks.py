#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Checks that the table of locks in Documentation/locking.rst and the sources name the same locks with the same ranks.

    locks.py ROOT

A lock of the sources is what `new_mutex!` or `new_spinlock!` makes, by the name that lockdep shows. Its rank, where a
comment gives it, stands behind the name: `Fence::inner` (rank 7, spinlock). In the table a rank is a number or `leaf`.
"""

import re
import sys

import tree

TABLE = "Documentation/locking.rst"
ROW = re.compile(r"^ +\* - ([\w ]+)\n +- ``([\w:]+)`` \((\w+)\)", re.MULTILINE)
MADE = re.compile(r'\bnew_(mutex|spinlock)!\s*\(((?:[^;"]|;[^\n])*?)"([\w:]+)",?\s*\)', re.DOTALL)
RANKED = re.compile(r"`([\w:]+)`(?:\s|//[/!])+\((?:lock )?rank\s+(\w+)")


def check(root):
    """All problems of a source tree."""
    table = {name: (rank, kind) for rank, name, kind in ROW.findall(tree.read(root, TABLE))}
    problems, made = [], {}
    for file, text in tree.production(root):
        for kind, _, name in MADE.findall(text):
            made[name] = kind
            if name not in table:
                problems.append(f"{file}: {TABLE} has no lock {name}")
            elif table[name][1] != kind:
                problems.append(f"{file}: {name} is a {kind}, and a {table[name][1]} in {TABLE}")
        for name, rank in RANKED.findall(text):
            if name in table and table[name][0] != rank:
                problems.append(f"{file}: {name} has rank {rank}, and {table[name][0]} in {TABLE}")
    for name in table:
        if name not in made:
            problems.append(f"{TABLE}: no source makes a lock {name}")
    return problems


if __name__ == "__main__":
    sys.exit(tree.report(check(sys.argv[1])))
