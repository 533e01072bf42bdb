/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The module parameters, as Rust reads them: mirrored in rust/abstractions/params.rs.
 */
#ifndef _VIDMM_PARAMS_H
#define _VIDMM_PARAMS_H

#include <linux/types.h>

/* A number, and whether it was given: a parameter that was not leaves the choice to the profile. */
struct vidmm_number {
	u64 value;
	bool given;
};

struct vidmm_parameters {
	/* Null when not given. */
	char *backend;
	char *profile;
	char *segments;
	char *nodes;

	struct vidmm_number levels;
	struct vidmm_number update_mode;
	struct vidmm_number client_tables;
	struct vidmm_number paging_tables;
	struct vidmm_number save_restore;
	struct vidmm_number preemption;
	struct vidmm_number zero_pages;
	struct vidmm_number tlb_holds_invalid;
	struct vidmm_number slots;
	struct vidmm_number companion;
	struct vidmm_number sources;
	struct vidmm_number scratch;
	struct vidmm_number paging_buffer;
	struct vidmm_number reserve_va;
	struct vidmm_number timeout_ms;
	struct vidmm_number tlb_entries;
	struct vidmm_number seed;
	struct vidmm_number delay_us;
	struct vidmm_number self_check;
};

extern struct vidmm_parameters vidmm_parameters;

#endif /* _VIDMM_PARAMS_H */
