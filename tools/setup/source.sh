# SPDX-License-Identifier: GPL-2.0
# The choice of a kernel release, its packages and its source tree. Meant to be
# sourced after cache.sh; the commands run inside the root.
# shellcheck shell=bash

SERIES=7.3

# Prints "RELEASE VERSION" of the kernel in use, such as
# "7.3.4+deb13 7.3.4-1~bpo13+1". The choice is kept in the cache, so that a
# warm build needs no network; 'make update' forgets it.
chosen_release() {
	local choice="$VIDMM_CACHE/release-$SERIES" lock
	exec {lock}>"$VIDMM_CACHE/.lock-release"
	flock "$lock"
	if [ ! -s "$choice" ]; then
		say "choosing the newest $SERIES kernel of trixie-backports"
		"$SETUP_DIR/enter.sh" apt-get update -q >"$LOGS/release.log" 2>&1 ||
			die "the package lists cannot be fetched (log: $LOGS/release.log): check the network."
		"$SETUP_DIR/enter.sh" "$SETUP_DIR/release.sh" "$SERIES" >"$choice.new" ||
			die "no $SERIES kernel is served whole (image, modules, headers and source of one version) in trixie-backports at this moment: try later, or build with 'make KDIR=...'."
		mv "$choice.new" "$choice"
		say "kernel $(cut -d' ' -f1 "$choice") (Debian version $(cut -d' ' -f2 "$choice"))"
	fi
	exec {lock}>&-
	cat "$choice"
}

# Downloads packages (NAME=VERSION) and unpacks them under a directory.
#
#   unpack_packages DIRECTORY PACKAGE...
unpack_packages() {
	local directory=$1
	shift
	mkdir -p "$directory"
	# shellcheck disable=SC2016 # expanded in the root
	"$SETUP_DIR/enter.sh" sh -euc '
		directory=$1; shift
		cd /var/cache/apt/archives
		apt-get download -q "$@"
		for package in "$@"; do
			version=$(echo "${package#*=}" | sed "s/:/%3a/")
			dpkg-deb -x "${package%%=*}_${version}_"*.deb "$directory"
			echo "unpacked $package"
		done' sh "$directory" "$@"
}

unpack_source() {
	local directory=$1
	unpack_packages "$directory/package" "linux-source-$SERIES=$VERSION"
	"$SETUP_DIR/enter.sh" tar -C "$directory" --strip-components=1 -xf \
		"$directory/package/usr/src/linux-source-$SERIES.tar.xz"
	rm -rf "$directory/package"
}

make_source() {
	step "$1" unpack long_step "fetching and unpacking the kernel source" \
		"$LOGS/source.log" '.' \
		"check the network and the free disk space; if this version is no longer served, run 'make update'." \
		unpack_source "$1"
}

# Makes sure that the source tree of $VERSION is there and sets SOURCE.
need_source() {
	local name="source-$VERSION"
	make_entry "$name" make_source
	# shellcheck disable=SC2034 # for the scripts that source this
	SOURCE="$VIDMM_CACHE/$name"
}
