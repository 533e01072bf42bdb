#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Forgets which kernel was chosen and prepares the newest that is served.

set -euo pipefail
. "$(dirname "$0")/say.sh"
. "$(dirname "$0")/cache.sh"
. "$(dirname "$0")/source.sh"

rm -f "$VIDMM_CACHE/release-$SERIES"
"$SETUP_DIR/kernel-stock.sh" >/dev/null
say "in use: kernel $(cat "$VIDMM_CACHE/stock/release")"
