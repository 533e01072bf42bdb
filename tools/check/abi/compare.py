#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Compares the user ABI in its three forms: C headers, Rust mirror, tables.

    compare.py ROOT [LAYOUT_C]

Reads ROOT/include/uapi/linux/vidmm.h and vidmm_engine.h, ROOT/rust/uapi/abi/, and layout.tsv next to this file. Prints
one line per mismatch. With LAYOUT_C also writes a C file that fails to compile where sizes, offsets or values of the
headers differ from mirror and tables; the sums are then done by a compiler and not by this program.
"""

import os
import re
import sys
from collections import namedtuple

Field = namedtuple("Field", "name type")

# Type names of tables, C and Rust, with sizes in bytes; all are aligned to the second number.
TYPES = {
    "u32": ("__u32", "u32", 4, 4),
    "s32": ("__s32", "i32", 4, 4),
    "u64": ("__u64", "u64", 8, 8),
    "s64": ("__s64", "i64", 8, 8),
    "array": ("struct vidmm_array", "Array", 16, 8),
    "point": ("struct vidmm_point", "Point", 16, 8),
}
FROM_C = {c: table for table, (c, _, _, _) in TYPES.items()}
FROM_RUST = {rust: table for table, (_, rust, _, _) in TYPES.items()}
RUST_INTEGERS = {"u8": (0, 8), "u32": (0, 32), "u64": (0, 64), "usize": (0, 64), "i32": (1, 32), "i64": (1, 64)}

problems = []


def problem(text):
    problems.append(text)


def camel(name):
    return "".join(part.capitalize() for part in name.split("_"))


def read(*parts):
    with open(os.path.join(*parts), encoding="utf-8") as file:
        return file.read()


def number(text, where):
    """The value of an integer expression as the headers and the mirror write it, or None."""
    text = text.strip()
    while text.startswith("(") and text.endswith(")"):
        text = text[1:-1].strip()
    limits = re.fullmatch(r"([iu])(32|64)::MAX", text)
    if limits:
        return 2 ** (int(limits[2]) - (limits[1] == "i")) - 1
    shift = re.fullmatch(r"1(?:U|ULL)? << (\d+)", text)
    if shift:
        return 1 << int(shift[1])
    plain = re.fullmatch(r"(-?)(0[xX][0-9a-fA-F_]+|[0-9_]+)(?:U|ULL|LL)?", text)
    if plain:
        return int(plain[1] + plain[2].replace("_", ""), 0)
    problem(f"{where}: cannot read the value '{text}'")
    return None


class Header:
    """Structures and constants of the C headers."""

    def __init__(self, root):
        self.structs, self.constants, self.commands = {}, {}, {}
        for name in ("vidmm.h", "vidmm_engine.h"):
            self.parse(name, read(root, "include/uapi/linux", name))

    def parse(self, file, text):
        for include in re.findall(r"#\s*include\s*(\S+)", text):
            if include not in ("<linux/types.h>", "<linux/ioctl.h>"):
                problem(f"{file}: includes {include}")
        comments = re.findall(r"/\*\*\n(.*?)\*/", text, re.S)
        code = re.sub(r"/\*.*?\*/", "", text, flags=re.S).replace("\\\n", " ")

        for name, body in re.findall(r"struct (\w+) \{\n(.*?)\n\};", code, re.S):
            self.struct(file, name, body, comments)
        left = re.sub(r"struct \w+ \{\n.*?\n\};", "", code, flags=re.S)
        named = set(re.findall(r"^ \* %(VIDMM_\w+)$", "\n".join(comments), re.M))
        for line in left.split("\n"):
            define = re.fullmatch(r"#define (VIDMM_\w+)\s+(\S.*)", line)
            if define:
                self.define(file, define[1], define[2], named)
            elif line.strip() and not re.match(r"#(include|ifndef _UAPI|define _UAPI|endif)", line):
                problem(f"{file}: cannot read '{line.strip()}'")

    def struct(self, file, name, body, comments):
        fields = []
        for line in body.split("\n"):
            field = re.fullmatch(r"\t((?:struct )?\w+) (\w+);", line)
            if not field or field[1] not in FROM_C:
                problem(f"{file}: {name}: cannot read the field '{line.strip()}'")
                continue
            fields.append(Field(field[2], FROM_C[field[1]]))
        if name in self.structs:
            problem(f"{file}: {name} is there twice")
        self.structs[name] = fields
        texts = [text for text in comments if text.startswith(f" * struct {name} - ")]
        described = re.findall(r"^ \* @(\w+): ", texts[0], re.M) if texts else None
        if described != [field.name for field in fields]:
            problem(f"{file}: {name}: the kernel-doc does not name exactly its fields, in order")

    def define(self, file, name, value, named):
        if name in self.constants or name in self.commands:
            problem(f"{file}: {name} is there twice")
        command = re.fullmatch(r"_IOWR\(VIDMM_IOC_TYPE, VIDMM_NR_(\w+),\s+struct (\w+)\)", value)
        if command:
            self.commands[name] = (command[1], command[2])
            return
        self.constants[name] = number(value, f"{file}: {name}")
        by_table = name.endswith("_SIZE_FIRST") or name.startswith("VIDMM_NR_")
        if name not in named and not by_table:
            problem(f"{file}: {name} has no kernel-doc")


class Mirror:
    """Structures and constants of the Rust mirror, under the names they have in C."""

    def __init__(self, root):
        self.structs, self.constants, self.commands = {}, {}, {}
        self.layouts, self.first, self.all = {}, {}, None
        folder = os.path.join(root, "rust/uapi/abi")
        for file in sorted(os.listdir(folder)):
            if file.endswith(".rs"):
                self.parse(file, re.sub(r"//[^\n]*", "", read(folder, file)))

    def parse(self, file, text):
        if file == "mod.rs":
            each = re.search(r"\$callback! \{([\w\s,]*)\}", text)
            self.each = re.findall(r"\w+", each[1]) if each else []
        if re.search(r"\bunsafe\b|\bkernel::", text):
            problem(f"{file}: the mirror has neither unsafe code nor kernel types")

        for attributes, name, body in re.findall(r"((?:#\[[^\n]*\]\n)*)pub struct (\w+) \{\n(.*?)\n\}", text, re.S):
            if "#[repr(C)]" not in attributes:
                problem(f"{file}: {name} is not repr(C)")
            self.struct(file, name, body)
        for name, size, _, first, body in re.findall(
            r"layout!\((\w+), size (\d+)(, first (\d+))?, \{(.*?)\}\);", text, re.S
        ):
            self.layouts[name] = (int(size), [(f, int(o)) for f, o in re.findall(r"(\w+): (\d+),", body)])
            if first:
                self.first[name] = int(first)
        if file == "mod.rs":
            return
        constants = re.findall(r"pub const (\w+): ([^=;]+|\[[^\]]*\]) =\s*(.*?);", text, re.S)
        if len(constants) != len(re.findall(r"\bpub const [A-Z]", text)):
            problem(f"{file}: some constant cannot be read")
        for name, kind, value in constants:
            self.constant(file, name, kind, value)

    def struct(self, file, name, body):
        fields = []
        for line in filter(str.strip, body.split("\n")):
            field = re.fullmatch(r"    pub (?:r#)?(\w+): (\w+),", line)
            if not field or field[2] not in FROM_RUST:
                problem(f"{file}: {name}: cannot read the field '{line.strip()}'")
                continue
            fields.append(Field(field[1], FROM_RUST[field[2]]))
        self.structs[name] = fields

    def constant(self, file, name, kind, value):
        if file == "nr.rs" and name == "ALL":
            self.all = re.findall(r"\w+", value)
            return
        command = re.fullmatch(r"command\(nr::(\w+), size_of::<(\w+)>\(\)\)", value)
        if command:
            self.commands["VIDMM_" + name] = (command[1], command[2])
            return
        name = "VIDMM_" + {"nr.rs": "NR_", "engine.rs": "ENGINE_"}.get(file, "") + name
        if name in self.constants:
            problem(f"{file}: {name} is there twice")
        self.constants[name] = number(value, f"{file}: {name}")
        signed, bits = RUST_INTEGERS.get(kind, (0, 0))
        if self.constants[name] is not None and not (
            -signed * 2 ** (bits - 1) <= self.constants[name] < 2 ** (bits - signed)
        ):
            problem(f"{file}: {name}: {kind} is no type for its value")


class Tables:
    """Calls and layouts as the tables of the interface list them."""

    def __init__(self, folder):
        self.calls, self.structs, self.values = {}, {}, {}
        for line in read(folder, "layout.tsv").splitlines():
            words = line.split("\t")
            if words[0] == "call":
                self.calls[words[2]] = (int(words[1], 0), words[3] == "published")
            elif words[0] == "struct":
                fields = []
                self.structs[words[2]] = (int(words[1]), fields, words[3] == "published")
            elif words[0] == "field":
                fields.append((int(words[1]), Field(words[3], words[2])))
            elif words[0] == "value":
                self.values["VIDMM_" + words[2]] = int(words[1], 0)
            elif not line.startswith("#"):
                problem(f"layout.tsv: cannot read '{line}'")


def same_keys(what, left, left_name, right, right_name):
    for key in left:
        if key not in right:
            problem(f"{what} {key}: in {left_name}, not in {right_name}")
    for key in right:
        if key not in left:
            problem(f"{what} {key}: in {right_name}, not in {left_name}")
    return [key for key in left if key in right]


def compare_structs(header, mirror, tables):
    published = {f"vidmm_{name}": table for name, table in tables.structs.items() if table[2]}
    in_rust = {f"vidmm_{name}": camel(name) for name in tables.structs}
    rust_names = {rust: c for c, rust in in_rust.items()}
    in_mirror = {rust_names.get(name, name): fields for name, fields in mirror.structs.items()}
    same_keys("struct", header.structs, "the header", in_mirror, "the mirror")
    for name in same_keys("struct", published, "the tables", header.structs, "the header"):
        size, fields, _ = published[name]
        rust = in_rust[name]
        wanted = [field for _, field in fields]
        same_fields(name, "the header", header.structs[name], wanted)
        same_fields(name, "the mirror", mirror.structs.get(rust, wanted), wanted)
        layout = (size, [(field.name, offset) for offset, field in fields])
        if mirror.layouts.get(rust) != layout:
            problem(f"{name}: layout!({rust}) in the mirror is not what the tables say")
        end = 0
        for offset, field in fields:
            if offset != end or offset % TYPES[field.type][3]:
                problem(f"{name}: {field.name}: hole or bad alignment before offset {offset}")
            end = offset + TYPES[field.type][2]
        wide = any(TYPES[field.type][3] == 8 for field in wanted)
        if size != end or (wide and size % 8):
            problem(f"{name}: the fields end at {end}, the size is {size}")
    if sorted(mirror.each) != sorted(mirror.structs) or len(mirror.each) != len(set(mirror.each)):
        wrong = set(mirror.each) ^ set(mirror.structs)
        problem(f"for_each_struct! does not name each structure once: {', '.join(sorted(wrong))}")
    return published


def same_fields(name, where, found, wanted):
    for position in range(max(len(found), len(wanted))):
        have = found[position] if position < len(found) else None
        want = wanted[position] if position < len(wanted) else None
        if have != want:
            show = lambda field: f"{field.type} {field.name}" if field else "nothing"
            problem(f"{name}: field {position} is {show(have)} in {where}, {show(want)} in the tables")
            return


def compare_constants(header, mirror, tables):
    for rust, first in mirror.first.items():
        names = [name for name in tables.structs if camel(name) == rust]
        for name in names:
            mirror.constants[f"VIDMM_{name.upper()}_SIZE_FIRST"] = first
    for name in same_keys("constant", header.constants, "the header", mirror.constants, "the mirror"):
        if header.constants[name] != mirror.constants[name]:
            problem(f"{name}: {header.constants[name]} in the header, {mirror.constants[name]} in the mirror")
    for name, value in tables.values.items():
        if header.constants.get(name) != value:
            problem(f"{name}: {header.constants.get(name)} in the header, {value} in the tables")
    numbers = {f"VIDMM_NR_{name}": value for name, (value, _) in tables.calls.items()}
    in_header = {n: v for n, v in header.constants.items() if n.startswith("VIDMM_NR_")}
    bounds = (in_header.pop("VIDMM_NR_FIRST", None), in_header.pop("VIDMM_NR_LAST", None))
    if bounds != (0, 0x9F):
        problem("VIDMM_NR_FIRST and VIDMM_NR_LAST are not 0x00 and 0x9f")
    for name in same_keys("call", numbers, "the tables", in_header, "the header"):
        if numbers[name] != in_header[name]:
            problem(f"{name}: {in_header[name]:#04x} in the header, {numbers[name]:#04x} in the tables")
    if mirror.all != sorted(tables.calls, key=lambda call: tables.calls[call][0]):
        problem("nr::ALL is not the list of all calls in ascending order")


def compare_commands(header, mirror, tables):
    wanted = {
        f"VIDMM_IOCTL_{name}": (name, f"vidmm_{name.lower()}") for name, (_, built) in tables.calls.items() if built
    }
    for name in same_keys("command", wanted, "the tables", header.commands, "the header"):
        if wanted[name] != header.commands[name]:
            problem(f"{name}: number and structure in the header are {header.commands[name]}")
    for name in same_keys("command", wanted, "the tables", mirror.commands, "the mirror"):
        if (wanted[name][0], camel(wanted[name][1][len("vidmm_"):])) != mirror.commands[name]:
            problem(f"{name}: number and structure in the mirror are {mirror.commands[name]}")
        if f"VIDMM_{wanted[name][0]}_SIZE_FIRST" not in mirror.constants:
            problem(f"{name}: no size first published")


def literal(value):
    """`value` as a constant expression of C90 that holds for every integer type."""
    if value < 0:
        return f"-{-value}"
    return f"{value:#x}ULL" if value > 0x7FFFFFFF else str(value)


def layout_c(published, mirror, tables):
    """The text of a C file that compiles only if the headers agree with tables and mirror."""
    lines = ["#include <stddef.h>", '#include "vidmm.h"', '#include "vidmm_engine.h"', ""]
    lines.append("#define EQUAL(name, left, right) typedef char name[(left) == (right) ? 1 : -1]")
    for name, (size, fields, _) in published.items():
        lines.append(f"EQUAL(size_of_{name}, sizeof(struct {name}), {size});")
        for offset, field in fields:
            lines.append(f"EQUAL({name}_{field.name}, offsetof(struct {name}, {field.name}), {offset});")
            width = TYPES[field.type][2]
            lines.append(f"EQUAL({name}_{field.name}_size, sizeof(((struct {name} *)0)->{field.name}), {width});")
    for name, value in mirror.constants.items():
        if value is not None:
            lines.append(f"EQUAL(value_of_{name}, {name}, {literal(value)});")
    for name, (value, built) in tables.calls.items():
        if built:
            size = tables.structs[name.lower()][0]
            command = 3 << 30 | size << 16 | 0xDA << 8 | value
            lines.append(f"EQUAL(value_of_VIDMM_IOCTL_{name}, VIDMM_IOCTL_{name}, {command:#x}U);")
    return "\n".join(lines) + "\n"


def main():
    root = sys.argv[1]
    header, mirror, tables = Header(root), Mirror(root), Tables(os.path.dirname(os.path.abspath(__file__)))
    published = compare_structs(header, mirror, tables)
    compare_constants(header, mirror, tables)
    compare_commands(header, mirror, tables)
    if len(sys.argv) > 2:
        with open(sys.argv[2], "w", encoding="utf-8") as file:
            file.write(layout_c(published, mirror, tables))
    for text in problems:
        print(f"abi: {text}")
    if not problems:
        print(f"abi: {len(published)} structures, {len(header.constants)} constants, {len(header.commands)} commands")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
