#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Maps hostile scenarios to the tests that try them, and to the places in the design that make them impossible.

    faults.py ROOT          lists each scenario with its tests
    faults.py ROOT --rst    writes Documentation/faults.rst

Read is Documentation/faults.tsv: id, answer, what is attacked, remark. The answer is `tested`, and then some test has
the id in a tag, `[E3]`, as it has those of requirements; `design`, and then the remark says what makes the attack
impossible; or `later`, and then the remark says what it needs that is not there yet.

The exit code is 1 if a scenario has no answer, if a tag names one that does not exist, or if Documentation/faults.rst
says something else than `--rst` would write.
"""

import os
import sys
from collections import namedtuple

import requirements
import tree

Scenario = namedtuple("Scenario", "id answer attack remark")

TABLE = "Documentation/faults.tsv"
PAGE = "Documentation/faults.rst"
ID = r"[A-Q]\d+"
ANSWERS = ("tested", "design", "later")

CLASSES = {
    "B": "Command buffers, patch lists and the engine parser",
    "C": "Copying between user and kernel",
    "D": "Handles, ownership and object life",
    "E": "CPU mappings of allocations",
    "F": "Residency, eviction and paging",
    "H": "Fences, waits, events and poll",
}


def page(scenarios, tests):
    """The text of Documentation/faults.rst."""
    out = [
        ".. SPDX-License-Identifier: GPL-2.0",
        "",
        ".. Written by tools/check/faults.py --rst: change Documentation/faults.tsv, not this file.",
        "",
        "=================",
        "Hostile scenarios",
        "=================",
        "",
        "What went wrong in comparable drivers, turned into attacks on this one. A scenario is",
        "*tested*, or the *design* makes it impossible, or it needs something that comes *later*.",
        "Around every test the runner looks for reports in the kernel log and for anything that",
        "is not back at its first value.",
    ]
    for letter, title in CLASSES.items():
        out += ["", f"{letter}: {title}", "=" * (len(title) + 3), ""]
        out += [".. list-table::", "   :header-rows: 1", "   :widths: 6 10 34 50", ""]
        out += ["   * - Id", "     - Answer", "     - Attack", "     - Where"]
        for each in scenarios:
            if each.id[0] == letter:
                out += [f"   * - {each.id}", f"     - {each.answer}", f"     - {each.attack}"]
                where = [f"``{name}``" for name in tests.get(each.id, [])]
                out += requirements.cell(([each.remark] if each.remark else []) + where)
    return "\n".join(out) + "\n"


def check(root):
    """Text for the reader, problems, and the page."""
    rows = requirements.rows(root, TABLE)
    scenarios = [Scenario(*(row + [""])[:4]) for row in rows]
    tests = requirements.tests_of(root, ID)
    text, problems = [], []
    for each in scenarios:
        text.append(f"{each.id:4} {each.answer:7} {'; '.join(tests.get(each.id, [])) or each.remark}")
        if each.answer not in ANSWERS:
            problems.append(f"{each.id}: {each.answer} is no answer")
        if each.answer == "tested" and each.id not in tests:
            problems.append(f"{each.id}: no test tries it: {each.attack}")
        if each.answer != "tested" and not each.remark:
            problems.append(f"{each.id}: nothing says why it is not tested")
        if each.id[0] not in CLASSES:
            problems.append(f"{each.id}: its class has no title")
    for each in sorted(set(tests) - {each.id for each in scenarios}):
        problems.append(f"{each}: there is no such scenario in {TABLE} ({tests[each][0]})")
    return text, problems, page(scenarios, tests)


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
        problems.append(f"{PAGE} is out of date: run tools/check/faults.py . --rst, or make doc")
    return tree.report(problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
