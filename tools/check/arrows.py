#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Checks which room of the module names which: requests go down, and there are no cycles.

    arrows.py ROOT

A room is a folder of rust/ or a file beside the crate root. The table says what each room may name; everything else is
an arrow that goes up. Names in comments are no arrows.
"""

import re
import sys

import tree

# Room -> what it may name. `units` may be named by everybody; `uapi::abi` is the mirror of the C header, shared with the
# programs in tools/, and stands alone.
ARROWS = {
    "vidmm": {"uapi", "uapi::abi", "debugfs", "object", "backend", "abstractions"},
    "uapi": {"uapi::abi", "object", "abstractions"},
    "uapi::abi": set(),
    "debugfs": {"object", "abstractions"},
    "object": {"policy", "backend", "abstractions"},
    "policy": set(),
    "backend": {"abstractions"},
    "abstractions": set(),
    "units": set(),
}

# Arrows that go up for a reason: (beginning of the file, beginning of what it names).
EXCEPTIONS = [
    # The kernel's byte traits are unsafe to implement, and only abstractions may say so.
    ("rust/abstractions/bytes.rs", "uapi::abi"),
    # The command set is a contract with programs: its numbers exist once, in the mirror of the header.
    ("rust/backend/", "uapi::abi::engine"),
]

# Items that the `module!` macro puts into the crate root.
ROOT_ITEMS = {"LocalModule", "THIS_MODULE", "module_parameters"}

# Room -> the only other crates it may name.
CRATES = {
    "policy": {"core", "kernel::macros"},
    "uapi::abi": {"core", "zerocopy"},
    "units": {"core", "kernel::macros"},
}

# Raw bindings of the kernel, for this room alone.
BINDINGS_ROOM = "abstractions"

KEYWORDS = {"crate", "$crate", "super", "self"}
EXTERNAL = {"core", "alloc", "std", "kernel", "macros", "pin_init", "zerocopy", "ffi", "bindings"}


def module_of(path):
    """The module path of a source file: `rust/uapi/abi/mod.rs` is `["uapi", "abi"]`."""
    parts = path[len("rust/") : -len(".rs")].split("/")
    if parts[-1] == "mod":
        parts.pop()
    return [] if parts == ["vidmm"] else parts


def room_of(module):
    """The room of a module path."""
    if module[:2] == ["uapi", "abi"]:
        return "uapi::abi"
    return module[0] if module else "vidmm"


def use_paths(body):
    """All paths of the tree of one `use` declaration, as lists of names."""
    tokens = re.findall(r"\$?\w+|::|[{},*]", body)
    paths, prefix, current, skip = [], [], [], False
    for token in tokens:
        if token == "{":
            prefix.append(current)
            current = list(current)
        elif token in (",", "}"):
            if current and (not prefix or current != prefix[-1]):
                paths.append(current)
            skip = False
            if token == "}" and prefix:
                prefix.pop()
                current = []
            else:
                current = list(prefix[-1]) if prefix else []
        elif token == "as":
            skip = True
        elif token != "::" and not skip:
            current = current + [token]
    if current and not prefix:
        paths.append(current)
    return paths


def paths_in(code):
    """All paths that Rust code names, as (position, list of names)."""
    declarations = re.compile(r"\b(?:pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
    for declaration in declarations.finditer(code):
        for path in use_paths(declaration.group(1)):
            yield declaration.start(), path
    rest = declarations.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), code)
    for path in re.finditer(r"(?<![\w:$])(\$?\w+)((?:\s*::\s*\w+)+)", rest):
        yield path.start(), re.findall(r"\$?\w+", path.group())


def resolve(path, module):
    """What a path names, from the crate root down; None if it is another crate's or local."""
    head = path[0]
    if head in ("crate", "$crate"):
        return path[1:]
    if head == "self":
        return module + path[1:]
    if head == "super":
        ups = 0
        while ups < len(path) and path[ups] == "super":
            ups += 1
        return module[: max(0, len(module) - ups)] + path[ups:]
    return None


def problem_of(path, file, module):
    """Why a path may not stand in a file, or None."""
    room = room_of(module)
    target = resolve(path, module)
    if target is None:
        return external_problem(path, room)
    to = room_of(target)
    if not target or to in (room, "units") or to in ARROWS[room]:
        return None if target or room == "vidmm" else f"{room} names the whole crate"
    if any(file.startswith(start) and "::".join(target).startswith(above) for start, above in EXCEPTIONS):
        return None
    if to in ARROWS:
        return f"{room} may not name {to}"
    if path[0] == "super" or to in ROOT_ITEMS or (len(target) == 1 and to.islower()):
        return None  # An inner module of the file, an item of `module!`, or an exported macro.
    return f"{room} names {to}, which is no room"


def external_problem(path, room):
    """Why a path into another crate may not stand in a room, or None."""
    if path[0] not in EXTERNAL:
        return None
    if (path[:2] == ["kernel", "bindings"] or path[0] == "bindings") and room != BINDINGS_ROOM:
        return f"{room} names kernel::bindings, which only {BINDINGS_ROOM} may"
    if room in CRATES:
        if path[0] not in CRATES[room] and "::".join(path[:2]) not in CRATES[room]:
            return f"{room} may not name {'::'.join(path[:2])}"
    return None


def check(root):
    """All problems of a source tree."""
    problems = []
    for file in tree.files(root, ".rs", under="rust"):
        module = module_of(file)
        if room_of(module) not in ARROWS:
            problems.append(f"{file}: {room_of(module)} is no room of the table")
            continue
        code = tree.rust_code(tree.read(root, file))
        for position, path in paths_in(code):
            problem = problem_of(path, file, module)
            if problem:
                problems.append(f"{file}:{tree.line_of(code, position)}: {problem} ({'::'.join(path)})")
    return problems


if __name__ == "__main__":
    sys.exit(tree.report(check(sys.argv[1])))
