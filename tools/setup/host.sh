#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Checks what the set-up needs from the host; as root on Debian, installs it.

set -euo pipefail
. "$(dirname "$0")/say.sh"
. "$(dirname "$0")/cache.sh"

KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
MIRROR="${VIDMM_MIRROR:-http://deb.debian.org/debian}"

# Prints the Debian packages whose programs are missing here.
missing_packages() {
	command -v mmdebstrap >/dev/null || echo mmdebstrap
	command -v qemu-system-x86_64 >/dev/null || echo qemu-system-x86
	[ -e "$KEYRING" ] || echo debian-archive-keyring
	command -v unshare >/dev/null || echo util-linux
	command -v xz >/dev/null || echo xz-utils
	command -v curl >/dev/null || echo curl
	if [ "$(id -u)" -ne 0 ]; then
		command -v newuidmap >/dev/null || echo uidmap
	fi
}

install_packages() {
	local packages=$1 command
	command="apt-get install --no-install-recommends $packages"
	command -v apt-get >/dev/null ||
		die "this host lacks what Debian calls '$packages': install these with your distribution's tools."
	[ "$(id -u)" -eq 0 ] ||
		die "this host lacks some packages: run 'sudo $command' once, then try again."
	say "installing on the host: $packages"
	# shellcheck disable=SC2086 # a list of words
	{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
		$command -qq -y; } >"$LOGS/host.log" 2>&1 ||
		die "apt-get could not install $packages (log: $LOGS/host.log): check the network and apt's sources."
}

check_user_namespaces() {
	[ "$(id -u)" -eq 0 ] && return 0
	unshare --map-root-user --map-auto --mount true 2>/dev/null ||
		die "user namespaces are not usable: add this user to /etc/subuid and /etc/subgid ('sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $(id -un)'), allow unprivileged user namespaces, or run as root."
}

check_network() {
	curl --silent --fail --max-time 30 --output /dev/null \
		"$MIRROR/dists/trixie-backports/InRelease" ||
		die "the Debian mirror $MIRROR cannot be reached: check the network and http_proxy, or set VIDMM_MIRROR."
}

[ "$(uname -m)" = x86_64 ] ||
	die "this is a $(uname -m) machine and the prepared kernels are for x86_64: use 'make KDIR=...' here."
mkdir -p "$LOGS" 2>/dev/null ||
	die "cannot write to $VIDMM_CACHE: set VIDMM_CACHE to a directory of yours."
packages=$(missing_packages | tr '\n' ' ')
[ -z "$packages" ] || install_packages "$packages"
check_user_namespaces
check_network
