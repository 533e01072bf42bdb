# SPDX-License-Identifier: GPL-2.0
# Progress and failure messages of the set-up scripts. Meant to be sourced.
# shellcheck shell=bash

# Scripts that call each other share one clock.
export VIDMM_STARTED="${VIDMM_STARTED:-$(date +%s)}"

# Prints one progress line with the seconds since the set-up began.
say() {
	printf '[%4ds] %s\n' "$(($(date +%s) - VIDMM_STARTED))" "$*" >&2
}

# Stops with one sentence that says what is wrong and what to do about it.
die() {
	printf 'error: %s\n' "$*" >&2
	exit 1
}

# Shows how many lines of a log match a pattern, until the parent is gone: a
# moving counter on a terminal, one line each 20 seconds elsewhere.
show_progress() {
	local label=$1 log=$2 pattern=$3 parent=$4 count waited=0
	while sleep 1 && kill -0 "$parent" 2>/dev/null; do
		waited=$((waited + 1))
		count=$(grep -cE "$pattern" "$log" || true)
		if [ -t 2 ]; then
			printf '\r[%4ds]   %s: %s done' \
				"$(($(date +%s) - VIDMM_STARTED))" "$label" "$count" >&2
		elif [ $((waited % 20)) -eq 0 ]; then
			say "  $label: $count done"
		fi
	done
}

# Runs a long command with its output in a log, and shows how far it is.
#
# The command runs in the foreground, so that Ctrl-C ends it.
#
#   long_step LABEL LOG PATTERN REMEDY COMMAND...
long_step() {
	local label=$1 log=$2 pattern=$3 remedy=$4 progress status
	shift 4
	mkdir -p "$(dirname "$log")"
	say "$label"
	: >"$log"
	show_progress "$label" "$log" "$pattern" "$BASHPID" &
	progress=$!
	# Not behind '||': there, the shell would go on after a failed command.
	set +e
	(
		set -e
		"$@"
	) >"$log" 2>&1 </dev/null
	status=$?
	set -e
	kill "$progress" 2>/dev/null
	wait "$progress" 2>/dev/null || true
	if [ -t 2 ]; then printf '\r\033[K' >&2; fi
	if [ "$status" -ne 0 ]; then
		tail -n 15 "$log" >&2
		die "$label failed (full log: $log): $remedy"
	fi
}
