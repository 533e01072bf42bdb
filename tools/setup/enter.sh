#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs a command inside the Debian trixie root, in the current directory.
#
#   enter.sh COMMAND ARGUMENT...
#
# The checkout and the cache appear in the root at their own paths. VIDMM_ROOT
# names another root than the prepared one.

set -euo pipefail
. "$(dirname "$0")/say.sh"
. "$(dirname "$0")/cache.sh"

# Second half: runs in a mount namespace of its own, with root's rights in it.
inside() {
	local root=$1 directory bundle
	shift
	for directory in /proc /sys /dev; do
		mount --rbind "$directory" "$root$directory"
	done
	mount -t tmpfs tmpfs "$root/tmp"
	mkdir -p "$root$CHECKOUT" "$root$VIDMM_CACHE" "$root/var/cache/apt/archives"
	mount --bind "$CHECKOUT" "$root$CHECKOUT"
	mount --bind "$VIDMM_CACHE" "$root$VIDMM_CACHE"
	mount --bind "$DEBS" "$root/var/cache/apt/archives"
	for directory in ${VIDMM_BIND:-}; do
		mkdir -p "$root$directory"
		mount --bind "$directory" "$root$directory"
	done
	touch "$root/etc/resolv.conf" "$root/etc/hosts"
	mount --bind "$(realpath /etc/resolv.conf)" "$root/etc/resolv.conf" || true
	mount --bind /etc/hosts "$root/etc/hosts"
	# A host behind a proxy has its own certificates: use those.
	bundle="${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}"
	if [ -e "$bundle" ]; then
		mkdir -p "$root/etc/ssl"
		touch "$root/etc/ssl/host-ca.crt"
		mount --bind "$(realpath "$bundle")" "$root/etc/ssl/host-ca.crt"
	fi
	# shellcheck disable=SC2016 # expanded in the root
	exec chroot "$root" /usr/bin/env -i \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		PYTHONDONTWRITEBYTECODE=1 HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" \
		${http_proxy:+http_proxy="$http_proxy"} \
		${https_proxy:+https_proxy="$https_proxy"} \
		SSL_CERT_FILE=/etc/ssl/host-ca.crt \
		CARGO_HTTP_CAINFO=/etc/ssl/host-ca.crt \
		CARGO_HOME="$VIDMM_CACHE/cargo" \
		CARGO_TARGET_DIR="$CHECKOUT/build/tools" \
		DEBIAN_FRONTEND=noninteractive \
		VIDMM_CACHE="$VIDMM_CACHE" \
		/bin/sh -c 'cd "$0" 2>/dev/null || cd /; exec "$@"' "$PWD" "$@"
}

if [ "${1:-}" = --inside ]; then
	shift
	inside "$@"
fi

root="${VIDMM_ROOT:-$("$SETUP_DIR/root.sh")}"
mkdir -p "$DEBS"
if [ "$(id -u)" -eq 0 ]; then
	exec unshare --mount "$0" --inside "$root" "$@"
fi
exec unshare --map-root-user --map-auto --mount "$0" --inside "$root" "$@"
