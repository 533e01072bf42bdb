// SPDX-License-Identifier: GPL-2.0
/*
 * The bodies of the trace events, and the entry points through which Rust calls them.
 */

#define CREATE_TRACE_POINTS
#define CREATE_RUST_TRACE_POINTS
#include "events.h"

/* The sizes that rust/abstractions/trace.rs states. */
static_assert(sizeof(struct vidmm_event_place) == 16);
static_assert(sizeof(struct vidmm_event_backend_call) == 24);
static_assert(sizeof(struct vidmm_event_alloc) == 40);
static_assert(sizeof(struct vidmm_event_va_range) == 48);
static_assert(sizeof(struct vidmm_event_paging_op) == 144);
static_assert(sizeof(struct vidmm_event_paging_submit) == 48);
static_assert(sizeof(struct vidmm_event_resident_step) == 32);
static_assert(sizeof(struct vidmm_event_residency) == 56);
static_assert(sizeof(struct vidmm_event_dma_prepare) == 32);
static_assert(sizeof(struct vidmm_event_dma_portion) == 56);
static_assert(sizeof(struct vidmm_event_dma_patch) == 32);
static_assert(sizeof(struct vidmm_event_node) == 32);
static_assert(sizeof(struct vidmm_event_lock) == 24);
static_assert(sizeof(struct vidmm_event_fence) == 24);
static_assert(sizeof(struct vidmm_event_fence_wait) == 32);
static_assert(sizeof(struct vidmm_event_scanout) == 32);
static_assert(sizeof(struct vidmm_event_fault) == 24);
static_assert(sizeof(struct vidmm_event_device_state) == 16);
static_assert(sizeof(struct vidmm_event_budget) == 32);
static_assert(sizeof(struct vidmm_event_trim) == 24);
