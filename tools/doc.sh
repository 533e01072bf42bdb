#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Renders the documentation into build/doc: the documents, and rustdoc of the module.

set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/setup/say.sh"
. "$HERE/setup/cache.sh"
OUTPUT=$CHECKOUT/build/doc

# The documents that map requirements and hostile scenarios to tests are written anew.
"$SETUP_DIR/enter.sh" python3 "$HERE/check/requirements.py" "$CHECKOUT" --rst
"$SETUP_DIR/enter.sh" python3 "$HERE/check/faults.py" "$CHECKOUT" --rst
"$SETUP_DIR/enter.sh" python3 "$HERE/doc.py" "$CHECKOUT/Documentation" "$OUTPUT"
echo "documents: $OUTPUT/index.html"

"$SETUP_DIR/module.sh" stock >/dev/null
"$SETUP_DIR/enter.sh" "$HERE/rustdoc.sh" "$CHECKOUT/build/stock" "$OUTPUT/rustdoc"
echo "rustdoc:   $OUTPUT/rustdoc/vidmm/index.html"
