#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Checks the whole source tree: one line per step, and a summary.
#
#   run.sh [STEP...]    the named steps, by default all of them
#   run.sh --list       their names
#
# The exit code is 0 when every step passed. The output of each step is kept in
# build/check/STEP.log and shown when the step fails.

set -uo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
SETUP=$HERE/../setup
ROOT=$(cd "$HERE/../.." && pwd)
RESULTS=$ROOT/build/check

# Each step is the function step_NAME below.
STEPS="self format lints rustdoc clippy unsafety casts arrows locks abi requirements faults spdx sizes words paths examples shell docs"

# Runs a command in the Debian root, where all tools are of known versions.
in_root() {
	"$SETUP/enter.sh" "$@"
}

# Runs one of the small checkers next to this script on the source tree.
checker() {
	in_root python3 "$HERE/$1.py" "$ROOT" "${@:2}"
}

# The checkers themselves: each must be able to fail.
step_self() {
	in_root python3 -m unittest -q "$HERE/test_checks.py"
}

# Formatting, as the kernel does it.
step_format() {
	in_root "$HERE/format.sh"
}

# The module, with the kernel's lints and ours as errors.
step_lints() {
	"$HERE/module-lints.sh"
}

# Links in the comments of the module lead somewhere. Uses what the step before has built.
step_rustdoc() {
	in_root "$HERE/../rustdoc.sh" "$RESULTS/module" "$RESULTS/rustdoc" -Dwarnings
}

# The programs for userspace. What the kernel's lints allow is allowed here too:
# the policy is compiled for both.
step_clippy() {
	"$SETUP/cargo.sh" clippy --workspace --all-targets --quiet -- -D warnings \
		-Aclippy::{collapsible_if,needless_lifetimes,precedence,uninlined_format_args}
}

# The user ABI: C headers, Rust mirror and tables agree.
step_abi() {
	in_root "$HERE/abi/run.sh" "$ROOT"
}

# The C programs of the README compile.
step_examples() {
	# shellcheck disable=SC2016 # the inner shell expands it
	in_root sh -c 'sed -n "/^\`\`\`c\$/,/^\`\`\`\$/p" "$1/README.md" | grep -v "^\`\`\`" |
		gcc -Wall -Wextra -Werror -fsyntax-only -I"$1/include/uapi/linux" -x c -' sh "$ROOT"
}

# Shell scripts. A variable may be set for a script that sources another one.
step_shell() {
	# shellcheck disable=SC2016 # the inner shell expands it
	in_root sh -c 'find "$1/tools" -name "*.sh" -not -path "*/target/*" -print0 |
		xargs -0 shellcheck --severity=warning --exclude=SC2034 --external-sources' sh "$ROOT"
}

# The documents are well-formed.
step_docs() {
	in_root python3 "$HERE/../doc.py" "$ROOT/Documentation"
}

step_unsafety() { checker unsafety; }
step_casts() { checker casts; }
step_arrows() { checker arrows; }
step_locks() { checker locks; }
step_requirements() { checker requirements; }
step_faults() { checker faults; }
step_spdx() { checker spdx; }
step_sizes() { checker sizes; }
step_words() { checker words; }
step_paths() { checker paths; }

# Runs one step and prints its line; the status is that of the step.
run_step() {
	local name=$1 log=$RESULTS/$1.log started=$SECONDS status=0
	"step_$name" >"$log" 2>&1 </dev/null || status=$?
	if [ "$status" -eq 0 ]; then
		printf 'ok    %-14s %3d s\n' "$name" "$((SECONDS - started))"
		grep '^note: ' "$log" | sed 's/^note: /        /'
	else
		printf 'FAIL  %-14s %3d s\n' "$name" "$((SECONDS - started))"
		grep -v '^note: ' "$log" | tail -n "${VIDMM_CHECK_LINES:-30}" | sed 's/^/        /'
	fi
	return "$status"
}

if [ "${1:-}" = --list ]; then
	echo "$STEPS"
	exit 0
fi
read -ra steps <<<"${*:-$STEPS}"
for name in "${steps[@]}"; do
	declare -F "step_$name" >/dev/null || {
		echo "error: there is no step '$name'; there are: $STEPS" >&2
		exit 2
	}
done
mkdir -p "$RESULTS"
"$SETUP/root.sh" >/dev/null || exit 1
failed=()
for name in "${steps[@]}"; do
	run_step "$name" || failed+=("$name")
done
if [ ${#failed[@]} -ne 0 ]; then
	echo "check: failed in $SECONDS s: ${failed[*]} (whole output in build/check/)"
	exit 1
fi
echo "check: all passed in $SECONDS s"
