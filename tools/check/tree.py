# SPDX-License-Identifier: GPL-2.0
"""The files of a source tree, and Rust text without what is not code.

The checks look at files as they are on disk, whether git knows them or not, so that a new file is checked before it is
committed and an unpacked archive can be checked too.
"""

import os
import re

# Directories that hold nothing written by hand.
SKIPPED = {"build", "target", ".git", "__pycache__", ".tmp_versions"}


def files(root, *suffixes, under=""):
    """Yields the relative paths of the files below `under` whose names end in one of `suffixes`, in order."""
    for directory, names, leaves in os.walk(os.path.join(root, under)):
        names[:] = sorted(name for name in names if name not in SKIPPED)
        for leaf in sorted(leaves):
            path = os.path.join(directory, leaf)
            if not os.path.islink(path) and (not suffixes or leaf.endswith(suffixes)):
                yield os.path.relpath(path, root)


def read(root, path):
    """The text of a file."""
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def line_of(text, position):
    """The number of the line, from 1, in which a position lies."""
    return text.count("\n", 0, position) + 1


# What may start something that is no code: comments, strings with their prefixes, characters (and not lifetimes).
OPENERS = re.compile(
    r"""//[^\n]*
    |/\*
    |\b(?:br|cr|r)(?P<hashes>\#*)"
    |(?:\b[bc])?"
    |(?:\bb)?'(?:\\(?:x[0-9a-fA-F]{2}|u\{[^}]*\}|.)|[^'\\\n])'""",
    re.VERBOSE,
)


def rust_code(text):
    """The same text with comments, strings and characters replaced by blanks; lines and columns stay."""
    kept, position = [], 0
    while True:
        opener = OPENERS.search(text, position)
        if opener is None:
            kept.append(text[position:])
            return "".join(kept)
        end = _end_of(text, opener)
        kept.append(text[position : opener.start()])
        kept.append(re.sub(r"[^\n]", " ", text[opener.start() : end]))
        position = end


def _end_of(text, opener):
    """Where the comment, string or character that `opener` begins ends."""
    start = opener.group()
    if start == "/*":
        depth, position = 1, opener.end()
        for mark in re.finditer(r"/\*|\*/", text[position:]):
            depth += 1 if mark.group() == "/*" else -1
            if depth == 0:
                return position + mark.end()
        return len(text)
    if opener.group("hashes") is not None:
        closing = text.find('"' + opener.group("hashes"), opener.end())
        return len(text) if closing < 0 else closing + 1 + len(opener.group("hashes"))
    if start.endswith('"'):
        closing = re.compile(r'(?:[^"\\]|\\.)*"', re.DOTALL).match(text, opener.end())
        return closing.end() if closing else len(text)
    return opener.end()


TEST_GATE = r"#\[cfg\((?:any\(test, )?(?:test|CONFIG_KUNIT)\)*\]\n(?:[ \t]*#\[[^\n]*\n)*[ \t]*(?:pub(?:\([^)]*\))? )?mod (\w+)"


def production(root, under="rust"):
    """Yields the Rust files below `under` that are more than tests, with their text up to the tests at the foot."""
    names = list(files(root, ".rs", under=under))
    gated = []
    for file in names:
        directory = os.path.dirname(file) if file.endswith(("/mod.rs", "rust/vidmm.rs")) else file[: -len(".rs")]
        for module in re.findall(TEST_GATE + ";", read(root, file)):
            gated += [f"{directory}/{module}.rs", f"{directory}/{module}/"]
    for file in names:
        if not file.startswith(tuple(gated)):
            yield file, without_tests(read(root, file))


def without_tests(text):
    """Rust text up to the tests at the foot of the file."""
    tests = re.search("^" + TEST_GATE + r" \{", text, re.MULTILINE)
    return text[: tests.start()] if tests else text


def report(problems, notes=()):
    """Prints notes and problems, one a line; the exit code is 1 if there are problems."""
    for note in notes:
        print(f"note: {note}")
    for problem in problems:
        print(problem)
    return 1 if problems else 0
