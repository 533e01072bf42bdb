#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Checks for words that do not belong into the product.

    words.py ROOT

Each rule is a pattern, the reason, the files it looks at, and whether it looks at code alone (without comments and
strings) or at everything. The patterns are written so that they do not find themselves.
"""

import re
import sys
from collections import namedtuple

import tree

Rule = namedtuple("Rule", "pattern reason files code")

TEXT = (".rs", ".c", ".h", ".sh", ".py", ".toml", ".md", ".rst", ".config", ".tsv", "Makefile", "Kbuild")
RUST = (".rs",)

RULES = [
    # Unfinished work. Where a tag in parentheses follows, a document explains it.
    Rule(r"\bFI[X]ME\b|\bX[X]X\b|\bHA[C]K\b", "unfinished", TEXT, False),
    Rule(r"\bTO[D]O\b(?!\()", "unfinished, and without a tag", TEXT, False),
    Rule(r"(?i)\bfor n[o]w\b|\bplacehold[e]r\b|\bsimplifi[e]d\b|\bnot implemented y[e]t\b", "unfinished", TEXT, False),
    Rule(r"(?i)\bdummy implementatio[n]\b|\bwill be (?:added|done) late[r]\b", "unfinished", TEXT, False),
    Rule(r"\b(?:tod[o]|unimplemente[d]|db[g])!", "unfinished", RUST, True),
    # How and where the driver is developed says nothing about the driver.
    Rule(r"(?<![\w.-])/wor[k]/|(?<![\w-])\.\./share[d]|\bshared/spe[c]\b|/hom[e]/\w", "a path of one machine", TEXT, False),
    Rule(r"\bC[I]\b|(?i:\bissue #?\d|\bpull reques[t]|\bchat\b|\bpromp[t]s?\b)", "about the development", TEXT, False),
    Rule(r"(?i)\b(?:a[s] (?:requested|instructed)|per the (?:brief|tas[k])|the specificatio[n] says)\b", "about the development", TEXT, False),
    # Names that say nothing.
    Rule(r"\b(?:struct|enum|trait|type|union)\s+\w*(?:Manage[r]|Helpe[r]|Util[s]?|Mis[c])\b", "a name that says nothing", RUST, True),
    Rule(r"\bmod\s+(?:util[s]?|commo[n]|helper[s]?|type[s]|misc|prelude)\b", "a room without a concept", RUST, True),
]

# Names of files that hide several concepts.
NAMELESS = re.compile(r"^(?:rust|tools)(?:/(?!fallback)[^/]+)*/(?:utils?|common|misc|types|helpers|prelude)\.(?:rs|py|sh|h)$")


def check(root):
    """All problems of a source tree."""
    problems = []
    for file in tree.files(root, *TEXT):
        if NAMELESS.search(file):
            problems.append(f"{file}: a file without a concept")
        text = tree.read(root, file)
        code = tree.rust_code(text) if file.endswith(RUST) else text
        for rule in RULES:
            if not file.endswith(rule.files):
                continue
            searched = code if rule.code else text
            for found in re.finditer(rule.pattern, searched):
                line = tree.line_of(searched, found.start())
                problems.append(f"{file}:{line}: '{found.group().strip()}' is {rule.reason}")
    return problems


if __name__ == "__main__":
    sys.exit(tree.report(check(sys.argv[1])))
