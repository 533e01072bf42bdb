#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Checks the formatting of all Rust files. Runs in the root.
#
#   format.sh [--write]     with --write formats them instead
#
# rustfmt is given the roots of the crates and follows their modules; a file
# that it does not come to belongs to no crate.

set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
mode=--check
[ "${1:-}" = --write ] && mode=
failed=0

roots=(rust/vidmm.rs)
for root in tools/*/src/main.rs tools/*/src/lib.rs tools/*/tests/*.rs tools/*/examples/*.rs tools/*/build.rs tools/bench/peers/*.rs; do
	[ -e "$root" ] && roots+=("$root")
done
visited=$(mktemp)
trap 'rm -f "$visited"' EXIT

# shellcheck disable=SC2086 # an option or nothing
rustfmt --config-path .rustfmt.toml --color never $mode "${roots[@]}" || failed=1
rustfmt --config-path .rustfmt.toml --verbose --check -l "${roots[@]}" >"$visited"

while IFS= read -r orphan; do
	echo "$orphan: belongs to no crate"
	failed=1
done < <(comm -13 \
	<(sed -n 's/^Formatting //p' "$visited" | xargs -r realpath --relative-to=. | sort -u) \
	<(find rust tools -name '*.rs' -not -path '*/target/*' | sort))
exit $failed
