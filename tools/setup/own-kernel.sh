#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Builds the module against a kernel tree of the user's own, into build/own/.
#
#   own-kernel.sh KDIR
#
# Nothing is prepared or downloaded: the tools are those of this machine.

set -euo pipefail
. "$(dirname "$0")/say.sh"

tree=$1
checkout=$(cd "$(dirname "$0")/../.." && pwd)
output="$checkout/build/own"

[ -e "$tree/Makefile" ] ||
	die "KDIR=$tree is no kernel tree: give the directory that the kernel was built in, or its headers."
tree=$(cd "$tree" && pwd)
config="$tree/.config"
[ -e "$config" ] ||
	die "KDIR=$tree has no .config: configure and build that kernel first."
grep -q '^CONFIG_RUST=y' "$config" ||
	die "the kernel in $tree is built without CONFIG_RUST=y: enable it there, or leave KDIR out to use the prepared kernel."
ls "$tree"/rust/*.rmeta >/dev/null 2>&1 ||
	die "$tree lacks the Rust metadata (rust/*.rmeta): run 'make prepare rust/' in it, or leave KDIR out to use the prepared kernel."
command -v rustc >/dev/null ||
	die "rustc is not installed here: install the version that $tree was built with."

wanted=$(sed -n 's/^CONFIG_RUSTC_VERSION_TEXT="\(.*\)"$/\1/p' "$config")
have=$(rustc --version)
[ -z "$wanted" ] || [ "$wanted" = "$have" ] ||
	die "the kernel in $tree was built with '$wanted', and this machine has '$have': modules need the same one; install it, or run tools/setup/enter.sh make KDIR=$1 to use the prepared compilers."

# The jobs and variables of our own make are not those of the kernel's.
unset MAKEFLAGS MAKELEVEL
mkdir -p "$output"
# A kernel that clang built wants modules that the same clang built.
llvm=()
clang=$(sed -n 's/^CONFIG_CLANG_VERSION=\([0-9]*\)[0-9][0-9][0-9][0-9]$/\1/p' "$config")
if [ -n "${LLVM:-}" ]; then
	llvm=(LLVM="$LLVM")
elif [ -n "$clang" ] && [ "$clang" -gt 0 ]; then
	if command -v "clang-$clang" >/dev/null; then
		llvm=(LLVM="-$clang")
	elif command -v clang >/dev/null; then
		llvm=(LLVM=1)
	else
		die "the kernel in $tree was built with clang $clang, which is not installed here: install it, or set LLVM."
	fi
fi
exec make --no-print-directory -C "$tree" M="$checkout" MO="$output" \
	"${llvm[@]}" -j"$(nproc)" modules
