#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Writes the rustdoc of the module, private items too. Runs in the root.
#
#   rustdoc.sh OBJECTS OUTPUT [OPTION...]
#
# OBJECTS is a directory where the module has been built: the command that the
# kernel's build used there says where the kernel's crates are and how the
# module is configured. The same command, given to rustdoc, documents it.

set -euo pipefail
objects=$1
output=$2
shift 2

cd "$objects"
command=$(sed -n 's/^savedcmd_rust\/vidmm.o := //p' rust/.vidmm.o.cmd)
[ -n "$command" ] || {
	echo "error: the module has not been built in $objects" >&2
	exit 1
}
# Lints and code generation are no matter of rustdoc.
command=$(sed -E 's/ (rustc|clippy-driver) / RUSTC_BOOTSTRAP=1 rustdoc --crate-name vidmm /
	s/ -[WDA][^ ]+//g
	s/ --emit=[^ ]+//g
	s/ --out-dir [^ ]+//
	s/ -Zbinary_dep_depinfo=y//
	s/ -C(debuginfo|embed-bitcode|lto|force-unwind-tables|codegen-units|opt-level)[^ ]+//g' <<<"$command")
eval "$command" --document-private-items -Arustdoc::private_intra_doc_links --output "$output" "$*"
