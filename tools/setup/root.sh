#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Makes the Debian trixie root that everything is built in; prints its path.

set -euo pipefail
. "$(dirname "$0")/say.sh"
. "$(dirname "$0")/cache.sh"

SUITE=trixie
MIRROR="${VIDMM_MIRROR:-http://deb.debian.org/debian}"
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

PACKAGES="
	gcc-14 gcc libc6-dev make flex bison bc libelf-dev libssl-dev cpio kmod
	xz-utils zstd pahole python3-minimal
	rustc rust-src rustfmt rust-clippy cargo bindgen libclang-dev
	clang-19 lld-19 llvm-19
	busybox-static ca-certificates git
	sparse shellcheck python3-docutils
"

# The smallest system that has apt. As root it is made in place; without rights
# it goes through a tar file, because the mapped user cannot enter our cache.
bootstrap() {
	local root=$1
	local options=(--variant=apt --keyring="$KEYRING" --quiet
		--aptopt='Acquire::Retries "3"' --aptopt='APT::Sandbox::User "root"')
	local sources=("deb $MIRROR $SUITE main" "deb $MIRROR $SUITE-updates main"
		"deb $MIRROR $SUITE-backports main")
	find "$root" -mindepth 1 -maxdepth 1 -exec rm -rf {} +
	if [ "$(id -u)" -eq 0 ]; then
		mmdebstrap --mode=root "${options[@]}" "$SUITE" "$root" "${sources[@]}"
	else
		rm -f "$VIDMM_CACHE/root.tar"
		mmdebstrap --mode=unshare --format=tar "${options[@]}" "$SUITE" \
			- "${sources[@]}" >"$VIDMM_CACHE/root.tar"
		unshare --map-root-user --map-auto tar -C "$root" -xf \
			"$VIDMM_CACHE/root.tar" --exclude='./dev/*'
		rm -f "$VIDMM_CACHE/root.tar"
	fi
}

install_packages() {
	# The .debs stay in the cache: an interrupted download goes on.
	VIDMM_ROOT=$1 "$SETUP_DIR/enter.sh" apt-get update
	# shellcheck disable=SC2086 # a list of words
	VIDMM_ROOT=$1 "$SETUP_DIR/enter.sh" apt-get install -y \
		--no-install-recommends -o APT::Keep-Downloaded-Packages=true \
		-o Dpkg::Options::=--force-unsafe-io $PACKAGES
}

make_root() {
	local root=$1
	"$SETUP_DIR/host.sh"
	need_space 7
	step "$root" bootstrap long_step "making a Debian $SUITE root" \
		"$LOGS/root.log" '.' "check the network and that mmdebstrap works here." \
		bootstrap "$root"
	step "$root" packages long_step "installing compilers in the root" \
		"$LOGS/root-packages.log" '^(Get:|Setting up)' \
		"check the network and the free disk space, then try again." \
		install_packages "$root"
}

name="root-$SUITE-$(echo "$PACKAGES" | key_of "$SETUP_DIR/root.sh")"
make_entry "$name" make_root
[ "$(readlink "$VIDMM_CACHE/root")" = "$name" ] ||
	ln -sfn "$name" "$VIDMM_CACHE/root"
echo "$VIDMM_CACHE/$name"
