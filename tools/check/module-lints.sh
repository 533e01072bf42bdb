#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Builds the module with the kernel's clippy lints and its C warnings, all as errors.
#
# The objects are kept apart from those of the module proper: build/check/module.

set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/../setup/say.sh"
. "$HERE/../setup/cache.sh"

# Beyond the kernel's lints: what may stop the kernel on a mistake of a program.
OURS=(-Dclippy::{unwrap_used,expect_used,panic,indexing_slicing,todo,unimplemented})

tree="$("$SETUP_DIR/kernel-stock.sh")/headers"
output=$CHECKOUT/build/check/module
mkdir -p "$output"
exec {lock}>"$output/.lock"
flock "$lock"

"$SETUP_DIR/enter.sh" make --no-print-directory -C "$tree" M="$CHECKOUT" MO="$output" \
	--keep-going -j"$(nproc)" CLIPPY=1 CLIPPY_CONF_DIR="$HERE" W=e KRUSTFLAGS="${OURS[*]}" modules
