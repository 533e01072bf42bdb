/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the driver hands to its trace events: one record per event, mirrored field by field in
 * rust/abstractions/trace.rs. Words are numbers here, counted from 0 in the order of the lists in
 * events.h.
 */
#ifndef _VIDMM_EVENT_RECORDS_H
#define _VIDMM_EVENT_RECORDS_H

#include <linux/types.h>

struct vidmm_event_place {
	u32 segment;
	u64 offset;
};

struct vidmm_event_backend_call {
	u32 name;
	u64 process;
	u64 allocation;
};

struct vidmm_event_alloc {
	u64 allocation;
	u32 action;
	u64 size;
	u32 flags;
	u64 cookie;
};

struct vidmm_event_va_range {
	u64 space;
	u64 process;
	u32 purpose;
	u64 start;
	u64 size;
	u32 action;
};

struct vidmm_event_paging_op {
	u64 sequence;
	u64 buffer;
	u32 operation;
	u64 space;
	u64 process;
	u64 allocation;
	struct vidmm_event_place source;
	struct vidmm_event_place destination;
	u64 address;
	u64 bytes;
	u32 mode;
	u32 cause;
	u32 level;
	u64 count;
	u64 protection;
	u64 driver;
	u32 flags;
};

struct vidmm_event_paging_submit {
	u64 buffer;
	u64 context;
	u32 node;
	u64 first_sequence;
	u64 last_sequence;
	u64 fence;
};

struct vidmm_event_resident_step {
	u32 where;
	u32 step;
	u64 allocation;
	u64 queue;
	u64 fence;
};

struct vidmm_event_residency {
	u64 allocation;
	u32 instance;
	struct vidmm_event_place from;
	struct vidmm_event_place to;
	u32 cause;
};

struct vidmm_event_dma_prepare {
	u64 submit;
	u32 entry;
	u32 slot;
	u64 allocation;
	u32 result;
};

struct vidmm_event_dma_portion {
	u64 submit;
	u64 context;
	u32 node;
	u32 start;
	u32 end;
	u32 first_entry;
	u32 entries;
	u64 fence;
	u64 submission;
};

struct vidmm_event_dma_patch {
	u64 submit;
	u32 offset;
	struct vidmm_event_place place;
};

struct vidmm_event_node {
	u32 node;
	u64 context;
	u32 kind;
	u64 fence;
};

struct vidmm_event_lock {
	u64 allocation;
	u32 instance;
	u32 decision;
	u64 wait_ns;
};

struct vidmm_event_fence {
	u64 fence;
	u64 value;
	u32 origin;
};

struct vidmm_event_fence_wait {
	u64 fence;
	u64 value;
	u64 context;
	u32 action;
};

struct vidmm_event_budget {
	u64 process;
	u32 group;
	u64 budget;
	u64 usage;
};

struct vidmm_event_trim {
	u64 process;
	u32 flags;
	u64 bytes;
};

struct vidmm_event_scanout {
	u64 allocation;
	struct vidmm_event_place place;
	u32 action;
};

struct vidmm_event_fault {
	u64 context;
	u64 address;
	u32 reason;
};

struct vidmm_event_device_state {
	u64 device;
	u32 state;
};

#endif /* _VIDMM_EVENT_RECORDS_H */
