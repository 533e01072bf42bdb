#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Builds the module for a prepared kernel, into build/KERNEL/.
#
#   module.sh stock|debug [TARGET...]

set -euo pipefail
. "$(dirname "$0")/say.sh"
. "$(dirname "$0")/cache.sh"

kernel=${1:-stock}
[ $# -eq 0 ] || shift
case $kernel in
stock) tree="$("$SETUP_DIR/kernel-stock.sh")/headers" ;;
debug) tree="$("$SETUP_DIR/kernel-debug.sh")/headers" ;;
*) die "there is no kernel called '$kernel': KERNEL is stock or debug." ;;
esac

# One build at a time in one output directory.
mkdir -p "$CHECKOUT/build/$kernel"
exec {lock}>"$CHECKOUT/build/$kernel/.lock"
flock "$lock"

# A source directory that holds objects, as 'make KDIR=... M=$PWD' leaves them
# behind, would hide changes: the outputs of each kernel are kept apart.
build() {
	local source=$1 output=$2
	shift 2
	"$SETUP_DIR/enter.sh" make --no-print-directory -C "$tree" \
		M="$source" MO="$output" -j"$(nproc)" "$@"
}

build "$CHECKOUT" "$CHECKOUT/build/$kernel" "${@:-modules}"

# The module that only measurements compare with, where it exists.
if [ "$kernel" = stock ] && [ $# -eq 0 ] && [ -e "$CHECKOUT/tools/bench/peers/Kbuild" ]; then
	build "$CHECKOUT/tools/bench/peers" "$CHECKOUT/build/stock/peers" modules
fi
