#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Lists the targets of the Makefile and the variables.

set -euo pipefail

echo 'make [TARGET] [VARIABLE=value ...]'
echo
echo 'Targets:'
sed -n 's/^\([a-z]*\):.*## \(.*\)$/\1|\2/p' "$@" |
	awk -F'|' '!seen[$1]++ { printf "  %-8s %s\n", $1, $2 }'
cat <<'TEXT'

Variables:
  KERNEL      stock (default) or debug: KASAN, lockdep, kmemleak, KUnit
  SUITE       one suite instead of all (test, soak); 'selftests --list' in the
              shell of the VM names them
  BACKEND     soft (default) or virtio-gpu (test)
  MINUTES     length of a soak, 10 by default
  SECONDS     length of fuzzing, 60 by default
  CMD         the shell command of exec
  FILES       files for the guest, as HERE:THERE (shell, exec); it has no libraries
  PARAMETERS  module parameters (shell, exec)
  ARGUMENTS   further arguments of the measuring program (bench)
  KDIR        a Rust-enabled kernel tree of yours to build the module against,
              with the tools of this machine; needs no set-up

Environment:
  VIDMM_CACHE   prepared kernels and compilers, ~/.cache/vidmm by default
  VIDMM_MIRROR  Debian mirror, http://deb.debian.org/debian by default

Results are in build/, console logs in build/logs/.
TEXT
