#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Prepares Debian's stock kernel for Rust modules; prints the entry's path.
#
# Debian's headers lack the metadata of the kernel's Rust crates. Made again
# from the same source, configuration and compiler they are the same, letter
# for letter: the symbols are compared. The entry holds
#
#   vmlinuz  config  modules/  headers/ (the KDIR of a module)  release

set -euo pipefail
. "$(dirname "$0")/say.sh"
. "$(dirname "$0")/cache.sh"
. "$(dirname "$0")/source.sh"

COMPILER=x86_64-linux-gnu-gcc-14
RUST_SOURCE=/usr/lib/rustlib/src/rust/library

unpack_image() {
	local entry=$1
	unpack_packages "$entry/packages" \
		"linux-binary-$RELEASE-amd64=$VERSION" \
		"linux-modules-$RELEASE-amd64=$VERSION" \
		"linux-base-$RELEASE-amd64=$VERSION" \
		"linux-headers-$RELEASE-amd64=$VERSION" \
		"linux-headers-$RELEASE-common=$VERSION" \
		"linux-kbuild-$RELEASE=$VERSION"
	local parts="$entry/packages/usr/lib/modules/$RELEASE-amd64"
	cp "$parts/vmlinuz" "$entry/vmlinuz"
	cp "$parts/config" "$entry/config"
	ln -sfn "packages/usr/lib/modules/$RELEASE-amd64" "$entry/modules"
}

build_metadata() {
	local objects=$1/objects
	mkdir -p "$objects"
	cp "$1/config" "$objects/.config"
	local command=(make -C "$SOURCE" O="$objects" CC="$COMPILER"
		RUST_LIB_SRC="$RUST_SOURCE" -j"$(nproc)")
	"$SETUP_DIR/enter.sh" "${command[@]}" olddefconfig
	grep -q '^CONFIG_RUST=y' "$objects/.config" || {
		echo "the configuration lost CONFIG_RUST with this compiler"
		"$SETUP_DIR/enter.sh" "${command[@]}" rustavailable
		return 1
	}
	"$SETUP_DIR/enter.sh" "${command[@]}" prepare rust/
}

# Every Rust symbol that the stock kernel exports must be among ours.
compare_symbols() {
	local entry=$1 missing
	awk '$2 ~ /^(_R|rust_helper_)/ { print $2 }' \
		"$entry/packages/usr/src/linux-headers-$RELEASE-amd64/Module.symvers" |
		sort -u >"$entry/symbols-stock"
	"$SETUP_DIR/enter.sh" sh -c "nm --defined-only -f posix $entry/objects/rust/*.o $entry/objects/rust/*/*.o" |
		awk 'NF > 1 { print $1 }' | sort -u >"$entry/symbols-ours"
	[ -s "$entry/symbols-stock" ] ||
		die "the stock kernel $RELEASE exports no Rust symbols: it is not Rust-enabled; use 'make KDIR=...'."
	missing=$(comm -23 "$entry/symbols-stock" "$entry/symbols-ours" | sed -n 1p)
	[ -z "$missing" ] ||
		die "the Rust symbol $missing of the stock kernel $RELEASE is not among those generated: its compiler or configuration differs from trixie's; wait for a newer kernel ('make update') or use 'make KDIR=...'."
	say "$(wc -l <"$entry/symbols-stock") Rust symbols compared, all there"
}

# Adds the metadata to the unpacked headers, which are ours alone. Their Makefile
# names an installed directory: it must name this one, under its final path.
assemble_headers() {
	local entry=$1 final=$2 objects=$1/objects sources=packages/usr/src
	local headers=$sources/linux-headers-$RELEASE-amd64
	mkdir -p "$entry/$headers/rust/kernel"
	cp "$objects"/rust/*.rmeta "$objects"/rust/*.so "$entry/$headers/rust/"
	cp "$objects"/rust/kernel/generated_arch_*_asm.rs "$entry/$headers/rust/kernel/"
	cp "$objects/scripts/target.json" "$entry/$headers/scripts/"
	printf 'KBUILD_OUTPUT=%s\ninclude %s\n' "$final/$headers" \
		"$final/$sources/linux-headers-$RELEASE-common/Makefile" \
		>"$entry/$headers/Makefile"
	ln -sfn "$headers" "$entry/headers"
	echo "$RELEASE-amd64" >"$entry/release"
	rm -rf "$objects" "$entry"/symbols-*
}

make_stock() {
	local entry=$1
	need_space 6
	step "$entry" image long_step "fetching the stock kernel $RELEASE" \
		"$LOGS/stock-image.log" '^unpacked' \
		"check the network and the free disk space; if this version is no longer served, run 'make update'." \
		unpack_image "$entry"
	need_source
	step "$entry" metadata long_step "making the kernel's Rust metadata" \
		"$LOGS/stock-metadata.log" '^  [A-Z]+ ' \
		"if the log shows a compiler of a wrong version, remove $VIDMM_CACHE and try again." \
		build_metadata "$entry"
	step "$entry" symbols compare_symbols "$entry"
	step "$entry" headers assemble_headers "$entry" "${entry%.partial}"
}

"$SETUP_DIR/root.sh" >/dev/null
choice=$(chosen_release)
RELEASE=${choice% *}
VERSION=${choice#* }
name="stock-$RELEASE-$(echo "$VERSION" | key_of "$SETUP_DIR/kernel-stock.sh" "$SETUP_DIR/root.sh")"
make_entry "$name" make_stock
[ "$(readlink "$VIDMM_CACHE/stock")" = "$name" ] ||
	ln -sfn "$name" "$VIDMM_CACHE/stock"
echo "$VIDMM_CACHE/$name"
