#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Checks the user ABI: the C headers, their Rust mirror and the tables of the interface say the same.
#
#   run.sh [ROOT]     ROOT is the source tree, by default the one this script lies in
#
# Exit code 0 if they agree, 1 if not. CC and RUSTC choose the compilers.

set -u
here=$(cd "$(dirname "$0")" && pwd)
root=${1:-$here/../../..}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

fail() {
	echo "abi: $1"
	failed=1
}

# Names, types, order, values and documentation, as text.
python3 "$here/compare.py" "$root" "$work/layout.c" || failed=1

# What a C compiler makes of the headers, for 32-bit and 64-bit programs.
cc=${CC:-gcc}
flags="-std=c90 -pedantic-errors -Wall -Wextra -Wpadded -Werror -Wno-long-long -ffreestanding -fsyntax-only"
multiarch=/usr/include/$($cc -print-multiarch 2>/dev/null)
for bits in 32 64; do
	[ -f "$work/layout.c" ] || continue
	system="-isystem $multiarch"
	echo '#include <linux/types.h>' |
		$cc -m$bits $system -fsyntax-only -xc - 2>/dev/null || system="-isystem $here/fallback"
	# shellcheck disable=SC2086 # Both are lists of options.
	$cc -m$bits $flags -I"$root/include/uapi/linux" $system "$work/layout.c" 2>"$work/errors" ||
		fail "the headers do not pass as C for $bits bits: $(grep -m1 error "$work/errors")"
done

# The assertions of the mirror itself, and a text for every item.
rustc=${RUSTC:-rustc}
$rustc --edition 2021 --crate-type lib --crate-name abi --emit metadata -D warnings -D missing_docs \
	-o "$work/abi.rmeta" "$root/rust/uapi/abi/mod.rs" 2>"$work/errors" ||
	fail "the mirror does not compile: $(grep -m1 '^error' "$work/errors") $(grep -m1 -e '-->' "$work/errors")"

[ $failed = 0 ] && echo "abi: ok"
exit $failed
