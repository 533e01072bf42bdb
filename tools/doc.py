#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Renders the documents of a directory as HTML, or only checks them.

    doc.py SOURCE            checks: any warning is an error
    doc.py SOURCE OUTPUT     writes one page per document

Links between documents name the source, `uapi.rst`, and lead to the page here.
"""

import glob
import os
import re
import sys

import docutils.core
import docutils.utils

SETTINGS = {
    "report_level": 2,
    "halt_level": 2,
    "input_encoding": "utf-8",
    "syntax_highlight": "none",
    "embed_stylesheet": True,
    "toc_backlinks": False,
    "smart_quotes": False,
    "file_insertion_enabled": True,
}

STYLE = """<style>
body { max-width: 60rem; margin: auto; padding: 0 1rem 4rem; font: 16px/1.5 sans-serif; }
nav { padding: .5rem 0; border-bottom: 1px solid #ccc; }
nav a { margin-right: .8em; }
table { border-collapse: collapse; } td, th { border: 1px solid #ccc; padding: .2rem .5rem; vertical-align: top; }
code, pre { font-family: monospace; background: #f4f4f4; } pre { padding: .5rem; overflow-x: auto; }
td ul { margin: 0; padding-left: 1rem; }
</style>"""


def page_of(source, navigation):
    """One document as HTML."""
    with open(source, encoding="utf-8") as file:
        text = file.read()
    parts = docutils.core.publish_parts(
        text, source_path=source, writer_name="html5", settings_overrides=SETTINGS
    )
    body = re.sub(r'href="([\w-]+)\.rst(#[^"]*)?"', r'href="\1.html\2"', parts["html_body"])
    return (
        "<!DOCTYPE html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{parts["title"]} - vidmm</title>{STYLE}</head>\n'
        f"<body>{navigation}{body}</body></html>\n"
    )


def main(source, output=None):
    documents = sorted(glob.glob(os.path.join(source, "*.rst")))
    names = [os.path.splitext(os.path.basename(path))[0] for path in documents]
    names.sort(key=lambda name: (name != "index", name))
    links = "".join(f'<a href="{name}.html">{name}</a>' for name in names)
    failed = 0
    for name in names:
        try:
            page = page_of(os.path.join(source, name + ".rst"), f"<nav>{links}</nav>")
        except docutils.utils.SystemMessage:
            failed = 1  # The message has been printed.
            continue
        if output:
            os.makedirs(output, exist_ok=True)
            with open(os.path.join(output, name + ".html"), "w", encoding="utf-8") as file:
                file.write(page)
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
