#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs cargo on the tools workspace, inside the root.

set -euo pipefail
setup=$(cd "$(dirname "$0")" && pwd)
cd "$setup/.."
exec "$setup/enter.sh" cargo "$@"
