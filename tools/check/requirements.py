#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Maps requirements to the sources that serve them and to the tests that prove them.

    requirements.py ROOT          lists each requirement with its tests, then the coverage of each stage
    requirements.py ROOT --rst    writes Documentation/requirements.rst

Read are Documentation/requirements.tsv (id, core or extended, stage, statement) and Documentation/stages.tsv (stage,
finished or open, what it brings). A test names what it proves in tags, `[SEG-1] [RES-2]` or `[SEG-1, RES-2]`: in the
string that is its name or stands before it, or, where it is a function, in the comment above it. A source names what it
serves in its comments.

The exit code is 1 if a requirement of a finished stage has no test, if a tag names a requirement that does not exist, or
if Documentation/requirements.rst says something else than `--rst` would write.
"""

import os
import re
import sys
from collections import defaultdict, namedtuple

import tree

Requirement = namedtuple("Requirement", "id kind stage statement")
Stage = namedtuple("Stage", "name state brings")

TABLE = "Documentation/requirements.tsv"
STAGES = "Documentation/stages.tsv"
PAGE = "Documentation/requirements.rst"

GROUPS = {
    "SEG": "Segments and physical access",
    "PAG": "Paging operations",
    "RES": "Residency",
    "VA": "GPU virtual address spaces",
    "TIL": "Tile resources and companion contexts",
    "DMA": "Submission and splitting",
    "REN": "Locking and renaming",
    "SYN": "Synchronisation",
    "BCK": "Backends",
}
ID = rf"(?:{'|'.join(GROUPS)})-\d+"


def tag(ids):
    """A tag of ids of one form."""
    return re.compile(rf"\[({ids}(?:,\s*{ids})*)\]")


TAG = tag(ID)
ANY_TAG = re.compile(r"\[[A-Z0-9, -]+\]")
STRING = re.compile(r'"((?:[^"\\\n]|\\.|\\\n)*)"[\s,]*(\w*)')
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)

# Comment and attributes above a function, and its name.
FUNCTION = re.compile(r"((?:^[ \t]*(?:///[^\n]*|#\[[^\n]*\])\n)+)[ \t]*(?:pub )?(?:async )?fn (\w+)", re.MULTILINE)

# Where tests are, and where sources are.
TEST_TREES = ("tools/selftests", "tools/policy", "tools/libvidmm", "rust")


def rows(root, path):
    """The rows of a table: tab-separated, without empty lines and comments."""
    lines = tree.read(root, path).splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


def tests_of(root, ids=ID):
    """Id -> tests that prove it, as `file: name`."""
    tests = defaultdict(list)
    for directory in TEST_TREES:
        for file in tree.files(root, ".rs", under=directory):
            for name, ids_of_test in tests_in(tree.read(root, file), ids):
                for each in ids_of_test:
                    tests[each].append(f"{file}: {name}")
    return tests


def tests_in(text, ids):
    """The tests of one file, as pairs of name and ids."""
    form = tag(ids)
    for string in STRING.finditer(text):
        tags = form.findall(string.group(1))
        if tags and not text.rfind("\n", 0, string.start()) < text.rfind("//", 0, string.start()):
            name = ANY_TAG.sub("", string.group(1)).strip(" :") or string.group(2)
            yield name, re.findall(ids, " ".join(tags))
    for function in FUNCTION.finditer(text):
        above = function.group(1)
        comment = "\n".join(line for line in above.splitlines() if line.lstrip().startswith("///"))
        tags = form.findall(comment)
        if tags:
            yield function.group(2), re.findall(ids, " ".join(tags))


def sources_of(root):
    """Id -> files that name it in a comment, tags of tests apart."""
    sources = defaultdict(list)
    for file in tree.files(root, ".rs", ".c", ".h", under="rust"):
        comments = " ".join(COMMENT.findall(tree.read(root, file)))
        for each in set(re.findall(rf"\b{ID}\b", TAG.sub("", comments))):
            sources[each].append(file)
    return sources


def coverage(requirements, stages, tests):
    """One line per stage: how many of its requirements have a test."""
    for stage in stages:
        ids = [each.id for each in requirements if each.stage == stage.name]
        proven = sum(1 for each in ids if each in tests)
        yield f"{stage.name:22} {stage.state:9} {proven:3} of {len(ids):3} proven"


def page(requirements, stages, tests, sources):
    """The text of Documentation/requirements.rst."""
    out = [
        ".. SPDX-License-Identifier: GPL-2.0",
        "",
        ".. Written by tools/check/requirements.py --rst: change the tables it reads, not this file.",
        "",
        "============",
        "Requirements",
        "============",
        "",
        "What the driver must do, which source serves it and which test proves it. Ids are",
        "permanent. A *core* requirement is never weakened; an *extended* one may be met in",
        "another way where a better design is found, and then this document says why. Each id",
        "belongs to the stage at whose end its test must hold.",
        "",
        "Stages",
        "======",
        "",
        ".. list-table::",
        "   :header-rows: 1",
        "   :widths: 20 10 12 58",
        "",
        "   * - Stage",
        "     - State",
        "     - Requirements",
        "     - Brings",
    ]
    for stage in stages:
        count = sum(1 for each in requirements if each.stage == stage.name)
        out += [f"   * - {stage.name}", f"     - {stage.state}", f"     - {count}", f"     - {stage.brings}"]
    for group, title in GROUPS.items():
        out += ["", f"{group}: {title}", "=" * (len(group) + 2 + len(title)), ""]
        out += [".. list-table::", "   :header-rows: 1", "   :widths: 8 12 40 20 20", ""]
        out += ["   * - Id", "     - Stage", "     - Statement", "     - Source", "     - Test"]
        for each in requirements:
            if each.id.split("-")[0] == group:
                out += entry(each, tests.get(each.id, []), sources.get(each.id, []))
    return "\n".join(out) + "\n"


def entry(requirement, tests, sources):
    """The row of one requirement."""
    kind = "" if requirement.kind == "core" else " (extended)"
    row = [f"   * - {requirement.id}", f"     - {requirement.stage}{kind}", f"     - {requirement.statement}"]
    row += cell([f"``{file}``" for file in sources])
    row += cell([f"``{name}``" for name in tests])
    return row


def cell(items):
    """The lines of one cell: a list, or nothing."""
    if not items:
        return ["     -"]
    return [f"     - * {items[0]}"] + [f"       * {item}" for item in items[1:]]


def check(root):
    """Text for the reader, and problems."""
    requirements = [Requirement(*row) for row in rows(root, TABLE)]
    stages = [Stage(*row) for row in rows(root, STAGES)]
    tests, sources = tests_of(root), sources_of(root)
    known = {each.id for each in requirements}
    finished = {stage.name for stage in stages if stage.state == "finished"}
    text, problems = [], []
    for each in requirements:
        text.append(f"{each.id:7} {each.stage:22} {'; '.join(tests.get(each.id, [])) or '-'}")
        if each.stage in finished and each.id not in tests:
            problems.append(f"{each.id}: no test proves it, and its stage {each.stage} is finished: {each.statement}")
        if each.stage not in {stage.name for stage in stages}:
            problems.append(f"{each.id}: {STAGES} has no stage {each.stage}")
    for each in sorted(set(tests) - known):
        problems.append(f"{each}: there is no such requirement ({tests[each][0]})")
    for each in sorted(set(sources) - known):
        problems.append(f"{each}: there is no such requirement ({sources[each][0]})")
    text += list(coverage(requirements, stages, tests))
    return text, problems, page(requirements, stages, tests, sources)


def main(root, options):
    text, problems, written = check(root)
    if "--rst" in options:
        with open(os.path.join(root, PAGE), "w", encoding="utf-8") as file:
            file.write(written)
        return 0
    print("\n".join(text))
    try:
        stale = tree.read(root, PAGE) != written
    except FileNotFoundError:
        stale = True
    if stale:
        problems.append(f"{PAGE} is out of date: run tools/check/requirements.py . --rst, or make doc")
    return tree.report(problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
