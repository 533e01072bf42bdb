# SPDX-License-Identifier: GPL-2.0
"""The checkers can fail: each is shown a small source tree that is clean, then one that is not."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import arrows
import casts
import faults
import locks
import paths
import requirements
import sizes
import spdx
import tree
import unsafety
import words


class Tree(unittest.TestCase):
    """A source tree in a temporary directory."""

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.root = self.directory.name

    def tearDown(self):
        self.directory.cleanup()

    def write(self, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)


class Code(unittest.TestCase):
    def test_comments_and_strings_are_no_code(self):
        text = 'let a = "x // y"; // unsafe\n/* unsafe /* nested */ */ let b = r#"un"safe"#; let c = \'"\'; d::<\'a>();'
        code = tree.rust_code(text)
        self.assertEqual(len(code), len(text))
        self.assertNotIn("unsafe", code)
        self.assertNotIn("x", code)
        for kept in ("let a =", "let b =", "let c =", "d::<'a>();"):
            self.assertIn(kept, code)


class Arrows(Tree):
    def problems(self, file, text):
        self.write(file, text)
        return arrows.check(self.root)

    def test_every_room_but_the_allowed_is_refused(self):
        rooms = [room for room in arrows.ARROWS if room not in ("vidmm", "uapi::abi")]
        for room in rooms:
            for other in rooms:
                file = f"rust/{room}/thing.rs"
                found = self.problems(file, f"use crate::{other}::Thing;\n")
                allowed = other in (room, "units") or other in arrows.ARROWS[room]
                self.assertEqual(found == [], allowed, f"{room} -> {other}: {found}")
                os.remove(os.path.join(self.root, file))

    def test_use_trees_are_followed(self):
        found = self.problems("rust/backend/mod.rs", "use crate::{\n    units::Bytes,\n    object::{self, Device},\n};\n")
        self.assertEqual(len(found), 2, found)

    def test_inline_paths_are_seen(self):
        self.assertTrue(self.problems("rust/policy/mod.rs", "fn f() { crate::backend::go(); }\n"))

    def test_super_cannot_climb_into_another_room(self):
        self.assertTrue(self.problems("rust/policy/deep/a.rs", "use super::super::super::object::Device;\n"))

    def test_a_macro_is_no_way_out(self):
        self.assertTrue(self.problems("rust/policy/a.rs", "macro_rules! m { () => { $crate::object::f() } }\n"))

    def test_comments_may_name_everything(self):
        self.assertEqual(self.problems("rust/policy/a.rs", "// use crate::object::Device;\n"), [])

    def test_the_mirror_of_the_header_stands_alone(self):
        self.assertTrue(self.problems("rust/uapi/abi/mod.rs", "use crate::uapi::handle::Handle;\n"))
        self.assertEqual(self.problems("rust/uapi/abi/mod.rs", "use core::mem::size_of;\n"), [])

    def test_policy_knows_no_kernel(self):
        self.assertTrue(self.problems("rust/policy/a.rs", "use kernel::prelude::*;\n"))

    def test_bindings_are_for_abstractions(self):
        self.assertTrue(self.problems("rust/object/a.rs", "use kernel::{bindings, prelude::*};\n"))
        os.remove(os.path.join(self.root, "rust/object/a.rs"))
        self.assertEqual(self.problems("rust/abstractions/a.rs", "use kernel::bindings;\n"), [])

    def test_a_new_room_must_be_in_the_table(self):
        self.assertTrue(self.problems("rust/shed/mod.rs", "\n"))


class Unsafety(Tree):
    def setUp(self):
        super().setUp()
        for file, gate in unsafety.GATES:
            self.write(file, gate + "\n")

    def test_the_gates_alone_are_clean(self):
        self.assertEqual(unsafety.check(self.root), [])

    def test_a_missing_gate_is_seen(self):
        self.write("rust/vidmm.rs", "// #![deny(unsafe_code)]\n")
        self.assertEqual(len(unsafety.check(self.root)), 1)

    def test_unsafe_elsewhere_is_seen(self):
        self.write("rust/object/a.rs", "fn f() { unsafe { g() } }\n")
        self.assertEqual(len(unsafety.check(self.root)), 1)

    def test_an_opened_gate_is_seen(self):
        self.write("rust/object/a.rs", "#[expect(dead_code, unsafe_code)]\nfn f() {}\n")
        self.assertEqual(len(unsafety.check(self.root)), 1)

    def test_named_files_of_the_tools_may_open_their_gate(self):
        self.write("tools/libvidmm/src/lib.rs", "#[allow(unsafe_code)]\npub mod ioctl;\n")
        self.assertEqual(unsafety.check(self.root), [])
        self.write("tools/libvidmm/src/lib.rs", "#[allow(unsafe_code)]\npub mod fence;\n")
        self.assertEqual(len(unsafety.check(self.root)), 1)

    def test_unsafe_in_the_cellar_is_fine(self):
        self.write("rust/abstractions/a.rs", "fn f() { unsafe { g() } }\n")
        self.assertEqual(unsafety.check(self.root), [])


class Casts(Tree):
    def test_a_cast_needs_its_reason(self):
        self.write("rust/a.rs", "use b::{C as _, D as E};\n// CAST: below 32.\nlet a = b as u8;\n")
        self.assertEqual(casts.check(self.root), [])
        self.write("rust/a.rs", "let a = b as u8;\n#[cfg(any(test, CONFIG_KUNIT))]\nmod tests {\n    let c = d as u8;\n}\n")
        self.assertEqual(len(casts.check(self.root)), 1)


class Locks(Tree):
    def setUp(self):
        super().setUp()
        self.write("Documentation/locking.rst", "   * - 2\n     - ``Thing::inner`` (mutex)\n     - everything\n")
        self.write("rust/object/thing.rs", '//! `Thing::inner` (rank 2, mutex).\ninner <- new_mutex!(Inner::new(), "Thing::inner"),\n')

    def test_sources_and_table_agree(self):
        self.assertEqual(locks.check(self.root), [])

    def test_a_lock_that_is_not_in_the_table_is_seen(self):
        self.write("rust/object/other.rs", 'a <- new_spinlock!(\n    List::new(),\n    "Other::list"\n),\n')
        self.assertEqual(len(locks.check(self.root)), 1)

    def test_another_rank_is_seen(self):
        self.write("rust/object/other.rs", "//! Needs `Thing::inner`\n//! (rank 3, mutex).\n")
        self.assertEqual(len(locks.check(self.root)), 1)

    def test_a_lock_that_is_gone_is_seen(self):
        self.write("rust/object/thing.rs", "")
        self.assertEqual(len(locks.check(self.root)), 1)


class Spdx(Tree):
    def test_each_kind_has_its_form(self):
        self.write("a.rs", "// SPDX-License-Identifier: GPL-2.0\n")
        self.write("b.sh", "#!/bin/sh\n# SPDX-License-Identifier: GPL-2.0\n")
        self.write("c.h", "/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */\n")
        self.assertEqual(spdx.check(self.root), [])
        self.write("d.rs", "//! No licence.\n")
        self.write("e.h", "// SPDX-License-Identifier: GPL-2.0\n")
        self.assertEqual(len(spdx.check(self.root)), 2)


class Sizes(Tree):
    def test_long_files_need_a_reason(self):
        self.write("a.rs", "//! Short.\n")
        self.write("b.rs", "//! Long.\n//!\n//! Size: one table.\n" + "\n" * 700)
        self.assertEqual(sizes.check(self.root), ([], []))
        self.write("c.rs", "//! Long.\n" + "fn f() {}\n" * 700 + "//! Size: too late.\n")
        self.write("d.rs", "//! Longish.\n" + "\n" * 450)
        problems, notes = sizes.check(self.root)
        self.assertEqual((len(problems), len(notes)), (1, 1))


class Words(Tree):
    def test_each_rule_finds_something(self):
        samples = [
            "// FIX" + "ME\n",
            "// TO" + "DO later\n",
            "// good enough for n" + "ow\n",
            "// dummy implementatio" + "n\n",
            "fn f() { tod" + "o!() }\n",
            "// see /wor" + "k/x\n",
            "// found by C" + "I\n",
            "// as reques" + "ted\n",
            "struct PageManage" + "r;\n",
            "mod commo" + "n;\n",
        ]
        self.assertEqual(len(samples), len(words.RULES))
        for sample in samples:
            self.write("rust/a.rs", sample)
            self.assertEqual(len(words.check(self.root)), 1, sample)

    def test_a_tagged_todo_and_plain_text_are_fine(self):
        self.write("rust/a.rs", "// TO" + "DO(tiles): see Documentation.\n// A page of the circle.\n")
        self.assertEqual(words.check(self.root), [])


class Paths(Tree):
    def test_names_and_links_must_exist(self):
        self.write("rust/units.rs", "")
        self.write("Documentation/a.rst", "See ``rust/units.rs`` and `a <a.rst>`_.\n")
        self.assertEqual(paths.check(self.root), [])
        self.write("README.md", "See `rust/gone.rs` and [b](Documentation/b.rst).\n")
        self.assertEqual(len(paths.check(self.root)), 2)


class Requirements(Tree):
    def setUp(self):
        super().setUp()
        self.write(requirements.TABLE, "SEG-1\tcore\tone\tFirst.\nSEG-2\tcore\tone\tSecond.\nVA-1\tcore\ttwo\tThird.\n")
        self.write(requirements.STAGES, "one\tfinished\tSomething.\ntwo\topen\tMore.\n")

    def problems(self):
        return requirements.check(self.root)[1]

    def test_an_unproven_requirement_of_a_finished_stage_is_seen(self):
        self.write("tools/selftests/src/a.rs", 'test("lists_all [SEG-1]", f);\n')
        self.assertEqual([each.split(":")[0] for each in self.problems()], ["SEG-2"])

    def test_names_and_comments_prove(self):
        self.write("tools/selftests/src/a.rs", 'test("lists_all [SEG-1, VA-1]", f);\n')
        self.write("rust/policy/a.rs", "    /// Fits. [SEG-2]\n    #[test]\n    fn fits() {}\n")
        self.assertEqual(self.problems(), [])

    def test_tags_may_stand_before_the_name(self):
        self.write("tools/selftests/src/a.rs", 'cases! { "[SEG-1] [SEG-2]" lists_all, }\n')
        self.assertEqual(self.problems(), [])
        self.assertEqual(requirements.tests_of(self.root)["SEG-2"], ["tools/selftests/src/a.rs: lists_all"])

    def test_comments_of_other_kinds_do_not_prove(self):
        self.write("tools/selftests/src/a.rs", '// "lists_all [SEG-1]"\n// [SEG-2]\n')
        self.assertEqual(len(self.problems()), 2)

    def test_an_unknown_id_is_seen(self):
        self.write("tools/selftests/src/a.rs", 'test("a [SEG-1, SEG-2]"); test("b [SEG-99]");\n')
        self.assertEqual(len(self.problems()), 1)

    def test_sources_name_what_they_serve_in_comments(self):
        self.write("rust/object/a.rs", "/// Moves (SEG-1, SEG-2).\n/// [VA-1]\nconst A: &str = \"VA-1\";\n")
        self.assertEqual(sorted(requirements.sources_of(self.root)), ["SEG-1", "SEG-2"])


class Faults(Tree):
    def problems(self, *rows):
        self.write(faults.TABLE, "".join("\t".join(row) + "\n" for row in rows))
        return faults.check(self.root)[1]

    def test_each_scenario_needs_its_answer(self):
        self.write("tools/selftests/src/a.rs", 'cases! { "[SEG-1] [E1]" refused, }\n')
        self.assertEqual(self.problems(["E1", "tested", "Attack.", ""]), [])
        self.assertEqual(len(self.problems(["E1", "design", "Attack.", ""])), 1)
        self.assertEqual(len(self.problems(["E1", "tested", "Attack."], ["E2", "tested", "Attack."])), 1)
        self.assertEqual(len(self.problems(["E1", "perhaps", "Attack.", "Remark."])), 1)

    def test_an_unknown_scenario_is_seen(self):
        self.write("tools/selftests/src/a.rs", 'cases! { "[E7]" refused, }\n')
        self.assertEqual(len(self.problems(["E1", "design", "Attack.", "Remark."])), 1)


if __name__ == "__main__":
    unittest.main()
