#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Checks that unsafe code has one address, and that the compiler holds us to it.

    unsafety.py ROOT

The lint gates must be where they belong and must not be opened anywhere else; the word `unsafe` must not occur outside
the files that may use it. Without the second rule a gate inside a macro could be missed.
"""

import re
import sys

import tree

# Gates that must be there: (file, attribute).
GATES = [
    ("rust/vidmm.rs", "#![deny(unsafe_code)]"),
    ("rust/policy/mod.rs", "#![forbid(unsafe_code)]"),
    ("rust/abstractions/mod.rs", "#![allow(unsafe_code)]"),
]

# Where unsafe code may stand in tools/: the two files of the user library, and those files of the selftests and the
# measurements that make system calls which neither the library nor rustix has.
TOOLS = {
    "libvidmm": ("ioctl", "mapping"),
    "selftests": ("call", "clock", "descriptor", "memory", "module", "process"),
    "bench": ("call", "clock", "memory", "ring", "scheduling"),
}
MAY_BE_UNSAFE = (
    "rust/abstractions/",
    *(f"tools/{program}/src/{name}.rs" for program, names in TOOLS.items() for name in names),
)

# Opens a gate, for a crate, a module or an item; group 1 is the module, if it is one in a file of its own.
OPENING = re.compile(
    r"#!?\[(?:allow|expect|warn)\([^)\]]*\bunsafe_code\b[^\]]*\](?:\s*(?:pub(?:\(crate\))? )?mod (\w+);)?"
)


def may_open(file, module):
    """Whether a file is the crate root that declares a module which may be unsafe."""
    parts = file.split("/")
    return len(parts) == 4 and parts[2] == "src" and module in TOOLS.get(parts[1], ())


def check(root):
    """All problems of a source tree."""
    problems = []
    for file, gate in GATES:
        try:
            code = tree.rust_code(tree.read(root, file))
        except FileNotFoundError:
            problems.append(f"{file}: is missing, and with it the gate {gate}")
            continue
        if gate not in code:
            problems.append(f"{file}: lacks the gate {gate}")
    for file in tree.files(root, ".rs"):
        if file.startswith(MAY_BE_UNSAFE):
            continue
        code = tree.rust_code(tree.read(root, file))
        for found in OPENING.finditer(code):
            if may_open(file, found.group(1)):
                continue
            problems.append(f"{file}:{tree.line_of(code, found.start())}: opens the gate for unsafe code")
        for found in re.finditer(r"\bunsafe\b", code):
            problems.append(f"{file}:{tree.line_of(code, found.start())}: unsafe outside its address")
    return problems


if __name__ == "__main__":
    sys.exit(tree.report(check(sys.argv[1])))
