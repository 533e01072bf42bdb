#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Prints the newest stock kernel release of our series that is served whole.
#
# Binary, modules, configuration, headers and source must all be of one
# version. Runs inside the root, on fresh package lists.

set -euo pipefail
SERIES="${1:?series, such as 7.3}"

# Succeeds when PACKAGE is served in VERSION.
served() {
	apt-cache madison "$1" | awk -F'|' -v want="$2" '
		{ gsub(/ /, "", $2); if ($2 == want) found = 1 }
		END { exit !found }'
}

releases=$(apt-cache pkgnames "linux-headers-$SERIES." |
	sed -n 's/^linux-headers-\([0-9.]*+deb13[0-9.]*\)-amd64$/\1/p' | sort -rV)
for release in $releases; do
	for version in $(apt-cache madison "linux-headers-$release-amd64" |
		awk -F'|' '{ gsub(/ /, "", $2); print $2 }' | sort -rVu); do
		whole=yes
		for package in "linux-binary-$release-amd64" \
			"linux-modules-$release-amd64" "linux-base-$release-amd64" \
			"linux-headers-$release-amd64" "linux-headers-$release-common" \
			"linux-kbuild-$release" "linux-source-$SERIES"; do
			served "$package" "$version" || whole=no
		done
		if [ "$whole" = yes ]; then
			echo "$release $version"
			exit 0
		fi
	done
done
exit 1
