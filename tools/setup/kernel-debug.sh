#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Builds the debug kernel (KASAN, lockdep, KUnit, ...); prints the entry's path.
#
# Same source as the stock kernel, tinyconfig plus debug.config, built with
# clang because Rust and KASAN need it together. The entry holds
#
#   vmlinuz  config  modules/  headers/ (the KDIR of a module)  release

set -euo pipefail
. "$(dirname "$0")/say.sh"
. "$(dirname "$0")/cache.sh"
. "$(dirname "$0")/source.sh"

FRAGMENT="$SETUP_DIR/debug.config"
TOOLCHAIN=-19
RUST_SOURCE=/usr/lib/rustlib/src/rust/library

kernel_make() {
	local objects=$1
	shift
	"$SETUP_DIR/enter.sh" nice -n 5 make -C "$SOURCE" O="$objects" LLVM="$TOOLCHAIN" \
		RUST_LIB_SRC="$RUST_SOURCE" KBUILD_BUILD_USER=vidmm \
		KBUILD_BUILD_HOST=vidmm -j"$(nproc)" "$@"
}

# Prints each line of the fragment that the resolved configuration lacks.
lost_options() {
	local config=$1 line
	grep -E '^(CONFIG_|# CONFIG_.* is not set)' "$FRAGMENT" |
		while read -r line; do
			grep -qxF "$line" "$config" && continue
			line=${line#\# }
			case $line in
			*' is not set') grep -q "^${line%% *}=" "$config" || continue ;;
			esac
			echo "$line"
		done
}

configure() {
	local objects=$1 lost
	mkdir -p "$objects"
	kernel_make "$objects" tinyconfig
	"$SETUP_DIR/enter.sh" sh -c "cd '$objects' && \
		'$SOURCE/scripts/kconfig/merge_config.sh' -m -O . .config '$FRAGMENT'"
	kernel_make "$objects" olddefconfig
	lost=$(lost_options "$objects/.config")
	[ -z "$lost" ] || {
		echo "options of debug.config that did not resolve: $lost"
		return 1
	}
}

build() {
	kernel_make "$1" bzImage modules
}

# Installs what a VM and a module build need, and drops the objects.
install_kernel() {
	local entry=$1 final=$2 objects=$1/objects release
	release=$(cat "$objects/include/config/kernel.release")
	kernel_make "$objects" INSTALL_MOD_PATH="$entry/install" modules_install
	ln -sfn "install/lib/modules/$release" "$entry/modules"
	cp "$objects/arch/x86/boot/bzImage" "$entry/vmlinuz"
	cp "$objects/.config" "$entry/config"
	printf 'KBUILD_OUTPUT = %s\nexport LLVM = %s\ninclude %s\n' "$final/objects" \
		"$TOOLCHAIN" "$SOURCE/Makefile" >"$objects/Makefile"
	ln -sfn objects "$entry/headers"
	find "$objects" \( -name scripts -o -name tools \) -prune -o \
		\( -name '*.o' -o -name '*.a' \) -type f -exec rm -f {} +
	echo "$release" >"$entry/release"
}

make_debug() {
	local entry=$1
	need_space 12
	need_source
	step "$entry" configure long_step "configuring the debug kernel" \
		"$LOGS/debug-configure.log" '.' \
		"see which options of debug.config the log names." configure "$entry/objects"
	step "$entry" build long_step "building the debug kernel (about 20 minutes, once)" \
		"$LOGS/debug-build.log" '^  (CC|AS|RUSTC|AR|LD)' \
		"free memory or disk if the log says so; a second try goes on from here." \
		build "$entry/objects"
	step "$entry" install install_kernel "$entry" "${entry%.partial}"
}

"$SETUP_DIR/root.sh" >/dev/null
choice=$(chosen_release)
VERSION=${choice#* }
name="debug-${choice% *}-$(echo "$VERSION" |
	key_of "$FRAGMENT" "$SETUP_DIR/kernel-debug.sh" "$SETUP_DIR/root.sh")"
make_entry "$name" make_debug
[ "$(readlink "$VIDMM_CACHE/debug")" = "$name" ] ||
	ln -sfn "$name" "$VIDMM_CACHE/debug"
echo "$VIDMM_CACHE/$name"
