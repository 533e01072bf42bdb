# SPDX-License-Identifier: GPL-2.0
#
# The front door. 'make help' lists what can be asked for; the work is done by
# tools/setup (kernels and compilers) and tools/vmtest (virtual machines).

KERNEL  ?= stock
ifeq ($(filter $(KERNEL),stock debug),)
$(error there is no kernel called '$(KERNEL)': KERNEL is stock or debug)
endif
BACKEND ?= soft
MINUTES ?= 10
SECONDS ?= 60

setup    := tools/setup
programs := build/tools/x86_64-unknown-linux-gnu/release
vmtest    = $(programs)/vmtest --kernel $(KERNEL)

# Kernel metadata and programs are prepared side by side.
MAKEFLAGS += -j2

.PHONY: all help root setup module tools run shell exec test kunit bench soak fuzz \
	check doc update clean
.DEFAULT_GOAL := all

all: module ## the module, for the prepared stock kernel or for KDIR=

ifdef KDIR
# A tree of the user's own, with the tools of this machine.
module:
	@$(setup)/own-kernel.sh "$(KDIR)"
else
module: setup ## the module for KERNEL=
	@$(setup)/module.sh $(KERNEL)
endif

setup: root ## prepare compilers and the KERNEL= that modules are built against
	@$(setup)/kernel-$(KERNEL).sh >/dev/null

root:
	@$(setup)/root.sh >/dev/null

tools: root ## the programs: vmtest, vidmm, selftests, bench
	@$(setup)/cargo.sh build --release

run: module tools ## boot a VM, load the module, show what it can do
	@$(vmtest) run

shell: module tools ## a shell in the VM, with the module loaded
	@$(vmtest) $(foreach file,$(FILES),--file $(file)) shell --parameters "$(PARAMETERS)"

.PHONY: command-given
command-given:
	@[ -n "$$CMD" ] || { echo "error: say which command: make exec CMD='vidmm info'" >&2; exit 1; }

export CMD
exec: command-given module tools ## one command in the VM: CMD='...' FILES='program:/bin/program'
	@$(vmtest) $(foreach file,$(FILES),--file $(file)) exec --load --parameters "$(PARAMETERS)" -- "$$CMD"

test: module tools ## all tests: SUITE= KERNEL= BACKEND=
	@$(vmtest) test --suite "$(SUITE)" --backend $(BACKEND) \
		--host-tests "$(setup)/cargo.sh test -p policy"

kunit: override KERNEL = debug
kunit: module tools ## the KUnit suites inside the module, on the debug kernel
	@$(vmtest) kunit

bench: module tools ## measurements, counted and timed
	@$(vmtest) bench $(ARGUMENTS)

soak: module tools ## the random loops of the tests, for long: SUITE= MINUTES=
	@$(vmtest) soak --suite "$(SUITE)" --minutes $(MINUTES)

fuzz: module tools ## random requests: SECONDS=
	@$(vmtest) fuzz --seconds $(SECONDS)

check: ## formatting, lints, rules of the house
	@tools/check/run.sh

doc: setup ## documentation, into build/doc
	@tools/doc.sh

update: ## use the newest kernel that Debian serves
	@$(setup)/update.sh

clean: ## remove build results; the cache outside the checkout stays
	rm -rf build

help: ## this list
	@$(setup)/help.sh $(MAKEFILE_LIST)
