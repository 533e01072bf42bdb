# SPDX-License-Identifier: GPL-2.0
# The cache outside the checkout. Meant to be sourced after say.sh.
# shellcheck shell=bash
#
# An entry is a directory whose name says what it was made from. It is built as
# NAME.partial and renamed when it is complete, so that an entry that exists is
# always whole. Steps inside a partial entry leave a stamp: work that was
# interrupted goes on after the last finished step.

export VIDMM_CACHE="${VIDMM_CACHE:-$HOME/.cache/vidmm}"
SETUP_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck disable=SC2034 # for the scripts that source this
CHECKOUT=$(cd "$SETUP_DIR/../.." && pwd)
DEBS="$VIDMM_CACHE/debs"
LOGS="$VIDMM_CACHE/logs"

# Prints a short hash of files (arguments) and of standard input.
key_of() {
	cat "$@" - | sha256sum | cut -c1-10
}

# Makes the entry NAME by calling FUNCTION PARTIAL-DIRECTORY, unless it exists.
# Concurrent callers wait for the one that makes it.
#
#   make_entry NAME FUNCTION
make_entry() {
	local name=$1 function=$2 lock
	[ -d "$VIDMM_CACHE/$name" ] && return 0
	mkdir -p "$VIDMM_CACHE" "$DEBS" "$LOGS" 2>/dev/null ||
		die "cannot write to $VIDMM_CACHE: set VIDMM_CACHE to a directory of yours."
	exec {lock}>"$VIDMM_CACHE/.lock-$name"
	if ! flock --nonblock "$lock"; then
		say "waiting for another set-up that makes $name"
		flock "$lock"
	fi
	if [ ! -d "$VIDMM_CACHE/$name" ]; then
		mkdir -p "$VIDMM_CACHE/$name.partial"
		"$function" "$VIDMM_CACHE/$name.partial"
		rm -f "$VIDMM_CACHE/$name.partial"/.done-*
		mv "$VIDMM_CACHE/$name.partial" "$VIDMM_CACHE/$name"
	fi
	exec {lock}>&-
}

# Runs one step of a partial entry, unless it was finished before.
#
#   step DIRECTORY STEP COMMAND...
step() {
	local directory=$1 name=$2
	shift 2
	[ -e "$directory/.done-$name" ] && return 0
	"$@"
	touch "$directory/.done-$name"
}

# Stops when fewer than GIB gigabytes are free where the cache lives.
need_space() {
	local gib=$1 free
	mkdir -p "$VIDMM_CACHE" 2>/dev/null ||
		die "cannot write to $VIDMM_CACHE: set VIDMM_CACHE to a directory of yours."
	free=$(df --output=avail -k "$VIDMM_CACHE" | tail -n 1)
	[ "$free" -ge $((gib * 1024 * 1024)) ] ||
		die "only $((free / 1024 / 1024)) GiB are free in $VIDMM_CACHE and $gib are needed: free some, or set VIDMM_CACHE to a larger disk."
}
