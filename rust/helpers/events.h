/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The trace events of the driver: what it decides and what it does, one line each.
 *
 * Their names, fields, order and words are an interface that tests read; the text of an event is its
 * fields as key=value with one blank between, and nothing else. Numbers are unsigned decimal;
 * offsets, addresses and bit masks are hexadecimal; a segment or node that is all ones is -1.
 *
 * A word lies in the ring buffer as a number, which costs four bytes and no copying of strings, and
 * becomes a word when it is printed. So filters compare numbers: "cause == 4" is pressure; the file
 * "format" of an event lists which number is which word. All other fields are filtered as they are.
 *
 * Size: one header for all events of a system, as the macros want it.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM vidmm

#if !defined(_VIDMM_EVENTS_H) || defined(TRACE_HEADER_MULTI_READ)
#define _VIDMM_EVENTS_H

#include <linux/tracepoint.h>

#include "event_records.h"

#define VIDMM_CALL_WORDS				\
	{ 0, "query_segments" },			\
	{ 1, "create_process" },			\
	{ 2, "destroy_process" },			\
	{ 3, "create_device" },				\
	{ 4, "destroy_device" },			\
	{ 5, "create_context" },			\
	{ 6, "destroy_context" },			\
	{ 7, "create_allocation" },			\
	{ 8, "destroy_allocation" },			\
	{ 9, "set_root" },				\
	{ 10, "map_host_aperture" },			\
	{ 11, "unmap_host_aperture" },			\
	{ 12, "suspend_context" },			\
	{ 13, "resume_context" },			\
	{ 14, "preempt" },				\
	{ 15, "reset_engine" },				\
	{ 16, "reset_adapter" }

#define VIDMM_LIFE_WORDS				\
	{ 0, "create" },				\
	{ 1, "destroy" }

#define VIDMM_PURPOSE_WORDS				\
	{ 0, "root" },					\
	{ 1, "table" },					\
	{ 2, "source" },				\
	{ 3, "destination" },				\
	{ 4, "backend" },				\
	{ 5, "pool" },					\
	{ 6, "reservation" },				\
	{ 7, "map" },					\
	{ 8, "fence" }

#define VIDMM_RANGE_WORDS				\
	{ 0, "alloc" },					\
	{ 1, "free" }

#define VIDMM_OPERATION_WORDS				\
	{ 0, "Fill" },					\
	{ 1, "Transfer" },				\
	{ 2, "Discard" },				\
	{ 3, "FillVirtual" },				\
	{ 4, "TransferVirtual" },			\
	{ 5, "UpdatePageTable" },			\
	{ 6, "FlushTLB" },				\
	{ 7, "CopyPageTableEntries" },			\
	{ 8, "MapAperture" },				\
	{ 9, "UnmapAperture" }

#define VIDMM_MODE_WORDS				\
	{ 0, "none" },					\
	{ 1, "gpu_virtual" },				\
	{ 2, "gpu_physical" },				\
	{ 3, "cpu_virtual" }

#define VIDMM_CAUSE_WORDS				\
	{ 0, "none" },					\
	{ 1, "create" },				\
	{ 2, "resident" },				\
	{ 3, "evict" },					\
	{ 4, "pressure" },				\
	{ 5, "move" },					\
	{ 6, "split" },					\
	{ 7, "map" },					\
	{ 8, "tile" },					\
	{ 9, "display" },				\
	{ 10, "power" },				\
	{ 11, "discard" },				\
	{ 12, "scrub" }

#define VIDMM_WHERE_WORDS				\
	{ 0, "app" },					\
	{ 1, "worker" }

#define VIDMM_PREPARE_WORDS				\
	{ 0, "resident" },				\
	{ 1, "paged-in" },				\
	{ 2, "unbound" },				\
	{ 3, "replaced" },				\
	{ 4, "no-memory" }

#define VIDMM_KIND_WORDS				\
	{ 0, "dma" },					\
	{ 1, "paging" },				\
	{ 2, "wait" },					\
	{ 3, "signal" }

#define VIDMM_DECISION_WORDS				\
	{ 0, "direct" },				\
	{ 1, "reuse" },					\
	{ 2, "rename" },				\
	{ 3, "stall" },					\
	{ 4, "would-block" }

#define VIDMM_ORIGIN_WORDS				\
	{ 0, "cpu" },					\
	{ 1, "gpu" },					\
	{ 2, "worker" },				\
	{ 3, "companion" },				\
	{ 4, "reset" }

#define VIDMM_WAIT_WORDS				\
	{ 0, "begin" },					\
	{ 1, "end" },					\
	{ 2, "cancel" }

#define VIDMM_SCANOUT_WORDS				\
	{ 0, "start" },					\
	{ 1, "stop" }

#define VIDMM_FAULT_WORDS				\
	{ 0, "NOT_MAPPED" },				\
	{ 1, "NOT_RESIDENT" },				\
	{ 2, "PROTECTION" }

/* The numbers of DEVICE_STATE in the interface. */
#define VIDMM_STATE_WORDS				\
	{ 1, "ACTIVE" },				\
	{ 2, "RESET" },					\
	{ 3, "HUNG" },					\
	{ 4, "STOPPED" },				\
	{ 5, "ERROR_MEMORY" },				\
	{ 6, "ERROR_DMA" },				\
	{ 7, "ERROR_FAULT" },				\
	{ 8, "ADAPTER_GONE" }

/* A call of the backend that is neither building nor submitting. */
TRACE_EVENT(backend_call,
	TP_PROTO(const struct vidmm_event_backend_call *record),
	TP_ARGS(record),
	TP_STRUCT__entry(
		__field(u32, name)
		__field(u64, process)
		__field(u64, alloc)
	),
	TP_fast_assign(
		__entry->name = record->name;
		__entry->process = record->process;
		__entry->alloc = record->allocation;
	),
	TP_printk("name=%s process=%llu alloc=%llu",
		  __print_symbolic(__entry->name, VIDMM_CALL_WORDS),
		  __entry->process, __entry->alloc)
);

/* An allocation comes into being or goes. */
TRACE_EVENT(alloc,
	TP_PROTO(const struct vidmm_event_alloc *record),
	TP_ARGS(record),
	TP_STRUCT__entry(
		__field(u64, alloc)
		__field(u32, action)
		__field(u32, flags)
		__field(u64, size)
		__field(u64, cookie)
	),
	TP_fast_assign(
		__entry->alloc = record->allocation;
		__entry->action = record->action;
		__entry->flags = record->flags;
		__entry->size = record->size;
		__entry->cookie = record->cookie;
	),
	TP_printk("alloc=%llu action=%s size=%llu flags=0x%x cookie=0x%llx",
		  __entry->alloc,
		  __print_symbolic(__entry->action, VIDMM_LIFE_WORDS),
		  __entry->size, __entry->flags, __entry->cookie)
);

/* A range of a GPU virtual address space is taken or given back. */
TRACE_EVENT(va_range,
	TP_PROTO(const struct vidmm_event_va_range *record),
	TP_ARGS(record),
	TP_STRUCT__entry(
		__field(u64, space)
		__field(u64, process)
		__field(u64, start)
		__field(u64, size)
		__field(u32, purpose)
		__field(u32, action)
	),
	TP_fast_assign(
		__entry->space = record->space;
		__entry->process = record->process;
		__entry->start = record->start;
		__entry->size = record->size;
		__entry->purpose = record->purpose;
		__entry->action = record->action;
	),
	TP_printk("space=%llu process=%llu purpose=%s start=0x%llx size=0x%llx action=%s",
		  __entry->space, __entry->process,
		  __print_symbolic(__entry->purpose, VIDMM_PURPOSE_WORDS),
		  __entry->start, __entry->size,
		  __print_symbolic(__entry->action, VIDMM_RANGE_WORDS))
);

/* A paging operation is built, or carried out if it needs no buffer. */
TRACE_EVENT(paging_op,
	TP_PROTO(const struct vidmm_event_paging_op *record),
	TP_ARGS(record),
	TP_STRUCT__entry(
		__field(u64, seq)
		__field(u64, buf)
		__field(u64, space)
		__field(u64, process)
		__field(u64, alloc)
		__field(u64, src_off)
		__field(u64, dst_off)
		__field(u64, va)
		__field(u64, bytes)
		__field(u64, count)
		__field(u64, protection)
		__field(u64, driver)
		__field(u32, op)
		__field(u32, src_seg)
		__field(u32, dst_seg)
		__field(u32, mode)
		__field(u32, cause)
		__field(u32, level)
		__field(u32, flags)
	),
	TP_fast_assign(
		__entry->seq = record->sequence;
		__entry->buf = record->buffer;
		__entry->space = record->space;
		__entry->process = record->process;
		__entry->alloc = record->allocation;
		__entry->src_off = record->source.offset;
		__entry->dst_off = record->destination.offset;
		__entry->va = record->address;
		__entry->bytes = record->bytes;
		__entry->count = record->count;
		__entry->protection = record->protection;
		__entry->driver = record->driver;
		__entry->op = record->operation;
		__entry->src_seg = record->source.segment;
		__entry->dst_seg = record->destination.segment;
		__entry->mode = record->mode;
		__entry->cause = record->cause;
		__entry->level = record->level;
		__entry->flags = record->flags;
	),
	TP_printk("seq=%llu buf=%llu op=%s space=%llu process=%llu alloc=%llu src_seg=%d src_off=0x%llx dst_seg=%d dst_off=0x%llx va=0x%llx bytes=%llu mode=%s cause=%s level=%u count=%llu protection=0x%llx driver=0x%llx flags=0x%x",
		  __entry->seq, __entry->buf,
		  __print_symbolic(__entry->op, VIDMM_OPERATION_WORDS),
		  __entry->space, __entry->process, __entry->alloc,
		  (s32)__entry->src_seg, __entry->src_off,
		  (s32)__entry->dst_seg, __entry->dst_off,
		  __entry->va, __entry->bytes,
		  __print_symbolic(__entry->mode, VIDMM_MODE_WORDS),
		  __print_symbolic(__entry->cause, VIDMM_CAUSE_WORDS),
		  __entry->level, __entry->count, __entry->protection,
		  __entry->driver, __entry->flags)
);

/* A paging buffer goes to its node. */
TRACE_EVENT(paging_submit,
	TP_PROTO(const struct vidmm_event_paging_submit *record),
	TP_ARGS(record),
	TP_STRUCT__entry(
		__field(u64, buf)
		__field(u64, ctx)
		__field(u64, first_seq)
		__field(u64, last_seq)
		__field(u64, fence)
		__field(u32, node)
	),
	TP_fast_assign(
		__entry->buf = record->buffer;
		__entry->ctx = record->context;
		__entry->first_seq = record->first_sequence;
		__entry->last_seq = record->last_sequence;
		__entry->fence = record->fence;
		__entry->node = record->node;
	),
	TP_printk("buf=%llu ctx=%llu node=%d first_seq=%llu last_seq=%llu fence=%llu",
		  __entry->buf, __entry->ctx, (s32)__entry->node,
		  __entry->first_seq, __entry->last_seq, __entry->fence)
);

/* A step of making resident begins. */
TRACE_EVENT(resident_step,
	TP_PROTO(const struct vidmm_event_resident_step *record),
	TP_ARGS(record),
	TP_STRUCT__entry(
		__field(u32, where)
		__field(u32, step)
		__field(u64, alloc)
		__field(u64, queue)
		__field(u64, fence)
	),
	TP_fast_assign(
		__entry->where = record->where;
		__entry->step = record->step;
		__entry->alloc = record->allocation;
		__entry->queue = record->queue;
		__entry->fence = record->fence;
	),
	TP_printk("where=%s step=%u alloc=%llu queue=%llu fence=%llu",
		  __print_symbolic(__entry->where, VIDMM_WHERE_WORDS),
		  __entry->step, __entry->alloc, __entry->queue,
		  __entry->fence)
);

/* A move is decided. */
TRACE_EVENT(residency,
	TP_PROTO(const struct vidmm_event_residency *record),
	TP_ARGS(record),
	TP_STRUCT__entry(
		__field(u64, alloc)
		__field(u64, from_off)
		__field(u64, to_off)
		__field(u32, instance)
		__field(u32, from_seg)
		__field(u32, to_seg)
		__field(u32, cause)
	),
	TP_fast_assign(
		__entry->alloc = record->allocation;
		__entry->from_off = record->from.offset;
		__entry->to_off = record->to.offset;
		__entry->instance = record->instance;
		__entry->from_seg = record->from.segment;
		__entry->to_seg = record->to.segment;
		__entry->cause = record->cause;
	),
	TP_printk("alloc=%llu instance=%u from_seg=%d from_off=0x%llx to_seg=%d to_off=0x%llx cause=%s",
		  __entry->alloc, __entry->instance,
		  (s32)__entry->from_seg, __entry->from_off,
		  (s32)__entry->to_seg, __entry->to_off,
		  __print_symbolic(__entry->cause, VIDMM_CAUSE_WORDS))
);

/* An element of a patch list is prepared. */
TRACE_EVENT(dma_prepare,
	TP_PROTO(const struct vidmm_event_dma_prepare *record),
	TP_ARGS(record),
	TP_STRUCT__entry(
		__field(u64, submit)
		__field(u64, alloc)
		__field(u32, entry)
		__field(u32, slot)
		__field(u32, result)
	),
	TP_fast_assign(
		__entry->submit = record->submit;
		__entry->alloc = record->allocation;
		__entry->entry = record->entry;
		__entry->slot = record->slot;
		__entry->result = record->result;
	),
	TP_printk("submit=%llu entry=%u slot=%u alloc=%llu result=%s",
		  __entry->submit, __entry->entry, __entry->slot,
		  __entry->alloc,
		  __print_symbolic(__entry->result, VIDMM_PREPARE_WORDS))
);

/* A portion of a DMA buffer goes to its node. */
TRACE_EVENT(dma_portion,
	TP_PROTO(const struct vidmm_event_dma_portion *record),
	TP_ARGS(record),
	TP_STRUCT__entry(
		__field(u64, submit)
		__field(u64, ctx)
		__field(u64, fence)
		__field(u64, submission)
		__field(u32, node)
		__field(u32, start)
		__field(u32, end)
		__field(u32, first_entry)
		__field(u32, entries)
	),
	TP_fast_assign(
		__entry->submit = record->submit;
		__entry->ctx = record->context;
		__entry->fence = record->fence;
		__entry->submission = record->submission;
		__entry->node = record->node;
		__entry->start = record->start;
		__entry->end = record->end;
		__entry->first_entry = record->first_entry;
		__entry->entries = record->entries;
	),
	TP_printk("submit=%llu ctx=%llu node=%d start=%u end=%u first_entry=%u entries=%u fence=%llu submission=%llu",
		  __entry->submit, __entry->ctx, (s32)__entry->node,
		  __entry->start, __entry->end, __entry->first_entry,
		  __entry->entries, __entry->fence, __entry->submission)
);

/* An address is written to a DMA buffer, or would be had it not been right. */
TRACE_EVENT(dma_patch,
	TP_PROTO(const struct vidmm_event_dma_patch *record),
	TP_ARGS(record),
	TP_STRUCT__entry(
		__field(u64, submit)
		__field(u64, seg_off)
		__field(u32, offset)
		__field(u32, seg)
	),
	TP_fast_assign(
		__entry->submit = record->submit;
		__entry->seg_off = record->place.offset;
		__entry->offset = record->offset;
		__entry->seg = record->place.segment;
	),
	TP_printk("submit=%llu offset=%u seg=%d seg_off=0x%llx",
		  __entry->submit, __entry->offset, (s32)__entry->seg,
		  __entry->seg_off)
);

/* A node begins or ends a buffer. */
DECLARE_EVENT_CLASS(vidmm_node,
	TP_PROTO(const struct vidmm_event_node *record),
	TP_ARGS(record),
	TP_STRUCT__entry(
		__field(u32, node)
		__field(u32, kind)
		__field(u64, ctx)
		__field(u64, fence)
	),
	TP_fast_assign(
		__entry->node = record->node;
		__entry->kind = record->kind;
		__entry->ctx = record->context;
		__entry->fence = record->fence;
	),
	TP_printk("node=%d ctx=%llu kind=%s fence=%llu",
		  (s32)__entry->node, __entry->ctx,
		  __print_symbolic(__entry->kind, VIDMM_KIND_WORDS),
		  __entry->fence)
);

DEFINE_EVENT(vidmm_node, node_begin,
	TP_PROTO(const struct vidmm_event_node *record),
	TP_ARGS(record)
);

DEFINE_EVENT(vidmm_node, node_end,
	TP_PROTO(const struct vidmm_event_node *record),
	TP_ARGS(record)
);

/* A lock for the CPU is decided. */
TRACE_EVENT(lock,
	TP_PROTO(const struct vidmm_event_lock *record),
	TP_ARGS(record),
	TP_STRUCT__entry(
		__field(u64, alloc)
		__field(u64, wait_ns)
		__field(u32, instance)
		__field(u32, decision)
	),
	TP_fast_assign(
		__entry->alloc = record->allocation;
		__entry->wait_ns = record->wait_ns;
		__entry->instance = record->instance;
		__entry->decision = record->decision;
	),
	TP_printk("alloc=%llu instance=%u decision=%s wait_ns=%llu",
		  __entry->alloc, __entry->instance,
		  __print_symbolic(__entry->decision, VIDMM_DECISION_WORDS),
		  __entry->wait_ns)
);

/* The value of a monitored fence changes. */
TRACE_EVENT(fence,
	TP_PROTO(const struct vidmm_event_fence *record),
	TP_ARGS(record),
	TP_STRUCT__entry(
		__field(u64, fence)
		__field(u64, value)
		__field(u32, origin)
	),
	TP_fast_assign(
		__entry->fence = record->fence;
		__entry->value = record->value;
		__entry->origin = record->origin;
	),
	TP_printk("fence=%llu value=%llu origin=%s",
		  __entry->fence, __entry->value,
		  __print_symbolic(__entry->origin, VIDMM_ORIGIN_WORDS))
);

/* Somebody waits for a value of a monitored fence. */
TRACE_EVENT(fence_wait,
	TP_PROTO(const struct vidmm_event_fence_wait *record),
	TP_ARGS(record),
	TP_STRUCT__entry(
		__field(u64, fence)
		__field(u64, value)
		__field(u64, ctx)
		__field(u32, action)
	),
	TP_fast_assign(
		__entry->fence = record->fence;
		__entry->value = record->value;
		__entry->ctx = record->context;
		__entry->action = record->action;
	),
	TP_printk("fence=%llu value=%llu ctx=%llu action=%s",
		  __entry->fence, __entry->value, __entry->ctx,
		  __print_symbolic(__entry->action, VIDMM_WAIT_WORDS))
);

/* A context met an address that it could not access. */
TRACE_EVENT(fault,
	TP_PROTO(const struct vidmm_event_fault *record),
	TP_ARGS(record),
	TP_STRUCT__entry(
		__field(u64, ctx)
		__field(u64, va)
		__field(u32, reason)
	),
	TP_fast_assign(
		__entry->ctx = record->context;
		__entry->va = record->address;
		__entry->reason = record->reason;
	),
	TP_printk("ctx=%llu va=0x%llx reason=%s",
		  __entry->ctx, __entry->va,
		  __print_symbolic(__entry->reason, VIDMM_FAULT_WORDS))
);

/* A device changes its state. */
TRACE_EVENT(device_state,
	TP_PROTO(const struct vidmm_event_device_state *record),
	TP_ARGS(record),
	TP_STRUCT__entry(
		__field(u64, device)
		__field(u32, state)
	),
	TP_fast_assign(
		__entry->device = record->device;
		__entry->state = record->state;
	),
	TP_printk("device=%llu state=%s",
		  __entry->device,
		  __print_symbolic(__entry->state, VIDMM_STATE_WORDS))
);

/* The budget of a client changes. Group 0 is local, 1 is not. */
TRACE_EVENT(budget,
	TP_PROTO(const struct vidmm_event_budget *record),
	TP_ARGS(record),
	TP_STRUCT__entry(
		__field(u64, process)
		__field(u32, group)
		__field(u64, budget)
		__field(u64, usage)
	),
	TP_fast_assign(
		__entry->process = record->process;
		__entry->group = record->group;
		__entry->budget = record->budget;
		__entry->usage = record->usage;
	),
	TP_printk("process=%llu group=%u budget=%llu usage=%llu",
		  __entry->process, __entry->group, __entry->budget,
		  __entry->usage)
);

/* A client is asked to give memory up. Flag 0x4: down to its budget. */
TRACE_EVENT(trim,
	TP_PROTO(const struct vidmm_event_trim *record),
	TP_ARGS(record),
	TP_STRUCT__entry(
		__field(u64, process)
		__field(u32, flags)
		__field(u64, bytes)
	),
	TP_fast_assign(
		__entry->process = record->process;
		__entry->flags = record->flags;
		__entry->bytes = record->bytes;
	),
	TP_printk("process=%llu flags=0x%x bytes=%llu",
		  __entry->process, __entry->flags, __entry->bytes)
);

/* A source begins or ceases to show a primary. */
TRACE_EVENT(scanout,
	TP_PROTO(const struct vidmm_event_scanout *record),
	TP_ARGS(record),
	TP_STRUCT__entry(
		__field(u64, alloc)
		__field(u64, off)
		__field(u32, seg)
		__field(u32, action)
	),
	TP_fast_assign(
		__entry->alloc = record->allocation;
		__entry->off = record->place.offset;
		__entry->seg = record->place.segment;
		__entry->action = record->action;
	),
	TP_printk("alloc=%llu seg=%d off=0x%llx action=%s",
		  __entry->alloc, (s32)__entry->seg, __entry->off,
		  __print_symbolic(__entry->action, VIDMM_SCANOUT_WORDS))
);

#endif /* _VIDMM_EVENTS_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE events
#include <trace/define_trace.h>
