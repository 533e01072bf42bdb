/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * vidmm: video memory management for GPUs, user interface version 1.0.
 *
 * The contract between /dev/vidmm and its users. /dev/vidmm is adapter 0,
 * /dev/vidmm1 and up are further ones.
 */
#ifndef _UAPI_LINUX_VIDMM_H
#define _UAPI_LINUX_VIDMM_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * DOC: Rules for every call
 *
 * *Size is the version.* Let U be the size in the command, K the size that the
 * kernel knows, V the size first published (the ``_SIZE_FIRST`` constants).
 * U below V is %EINVAL, U above one page is %E2BIG. With U below K the missing
 * tail is taken as zero and outputs beyond U are not written. With U above K
 * the tail must be all zero, else %E2BIG; on return it is cleared. A zero in a
 * new field means what the kernel did before it had the field. No structure has
 * a hole, all fields are naturally aligned, and layouts are the same for 32-bit
 * and 64-bit programs.
 *
 * *Zero means zero.* Padding and fields that do not apply are zero (%EINVAL).
 * Unknown flag bits, modes, operations and kinds are %EOPNOTSUPP, and so is a
 * known one whose feature bit is clear. Nothing is silently ignored. *Later*
 * marks what is reserved and not built.
 *
 * *Outputs.* A field marked [out] is written only on success, [out!] on failure
 * too, [in/out] is read and written on success. All outputs are cleared first.
 * Calls return 0 or an error, never a positive number. Calls that take a list
 * are all or nothing: if they fail nothing has changed, and ``fail_index``
 * names the element.
 *
 * *Waiting.* Every wait is interruptible, before the call has had any effect;
 * repeating it with the same argument is always correct. Times are nanoseconds
 * of CLOCK_MONOTONIC, deadlines are absolute.
 *
 * *Handles* are non-zero and private to the client, that is to the open file.
 * Fields of type ``__u64`` that carry a pointer hold a user address.
 */

/**
 * DOC: Errors
 *
 * What an errno means, for every call. A structure lists only what is special
 * to its call.
 *
 * %ENOTTY
 *   No such call.
 * %E2BIG
 *   The structure is newer and uses something this kernel does not know.
 * %EOPNOTSUPP
 *   Call and structure are understood, but a flag, mode, kind or feature is not
 *   available.
 * %EINVAL
 *   Malformed: padding set, bad alignment, inconsistent fields, list too long,
 *   node, segment, source or group out of range (QUERY: %ENOENT).
 * %EFAULT
 *   Bad user address.
 * %EBADF
 *   A descriptor that is not open; an open one of the wrong kind is %EINVAL.
 * %EMFILE, %ENFILE
 *   No room for a new descriptor.
 * %EOVERFLOW
 *   Offset plus size does not fit.
 * %ENOENT
 *   Handle unknown, stale, of another type, or not in this client.
 * %EXDEV
 *   Objects belong to different devices.
 * %EPERM
 *   Privilege missing.
 * %EACCES
 *   This use of the object is not allowed: write to something read-only, signal
 *   of a wait-only fence, physical access without the flag for it.
 * %EEXIST
 *   A fixed address range overlaps one that may not be replaced.
 * %EBUSY
 *   The object is in a state that forbids the operation: offered, on screen,
 *   pinned, exported.
 * %EAGAIN
 *   Would have to wait and a flag of the call says not to; O_NONBLOCK matters
 *   to read() only.
 * %ETIME
 *   Deadline passed.
 * %EINTR
 *   A signal arrived; nothing changed, call again.
 * %ENOMEM
 *   System memory or the caller's memory cgroup is exhausted.
 * %ENOSPC
 *   Video memory, aperture or address space cannot be found, even after paging;
 *   the handle table is full.
 * %ENOBUFS
 *   The list is legal but too big to handle at once; cut it and call again.
 * %ENODATA
 *   No signal for that fence value has been queued.
 * %ECANCELED
 *   Work was thrown away by a reset.
 * %EIO
 *   The device is in error; see DEVICE_STATE.
 * %ENODEV
 *   The adapter is gone.
 *
 * Checks run in this order: number, size, unknown tail, unknown flags, padding,
 * handles, rights, ranges, state, resources.
 */

/**
 * DOC: Calls
 *
 * Numbers of all calls of the interface. A number that is not among them is
 * %ENOTTY. One that is, and whose call the module does not build, is
 * %EOPNOTSUPP; the IOCTL record says which. Numbers are never reused or
 * redefined.
 *
 * %VIDMM_IOC_TYPE
 *   Type byte of every command.
 * %VIDMM_NR_FIRST
 *   First number of the block.
 * %VIDMM_NR_LAST
 *   Last number of the block.
 */
#define VIDMM_IOC_TYPE				0xDA
#define VIDMM_NR_FIRST				0x00
#define VIDMM_NR_LAST				0x9f

#define VIDMM_NR_QUERY				0x00
#define VIDMM_NR_SET_NAME			0x01
#define VIDMM_NR_CLOSE				0x02
#define VIDMM_NR_DEVICE_CREATE			0x10
#define VIDMM_NR_DEVICE_STATE			0x11
#define VIDMM_NR_ALLOC_CREATE			0x20
#define VIDMM_NR_ALLOC_QUERY			0x21
#define VIDMM_NR_ALLOC_UPDATE			0x22
#define VIDMM_NR_SET_PRIORITY			0x23
#define VIDMM_NR_LOCK				0x30
#define VIDMM_NR_UNLOCK				0x31
#define VIDMM_NR_CONTEXT_CREATE			0x40
#define VIDMM_NR_CONTEXT_SET			0x41
#define VIDMM_NR_SUBMIT_PATCHED			0x42
#define VIDMM_NR_SUBMIT_VIRTUAL			0x43
#define VIDMM_NR_SUBMIT_QUERY			0x44
#define VIDMM_NR_PAGING_QUEUE_CREATE		0x50
#define VIDMM_NR_MAKE_RESIDENT			0x51
#define VIDMM_NR_EVICT				0x52
#define VIDMM_NR_OFFER				0x53
#define VIDMM_NR_RECLAIM			0x54
#define VIDMM_NR_BUDGET				0x55
#define VIDMM_NR_RESERVE_BUDGET			0x56
#define VIDMM_NR_EVENTS				0x57
#define VIDMM_NR_VA_RESERVE			0x60
#define VIDMM_NR_VA_FREE			0x61
#define VIDMM_NR_VA_MAP				0x62
#define VIDMM_NR_VA_UPDATE			0x63
#define VIDMM_NR_VA_QUERY			0x64
#define VIDMM_NR_FENCE_CREATE			0x70
#define VIDMM_NR_FENCE_SIGNAL			0x71
#define VIDMM_NR_FENCE_WAIT			0x72
#define VIDMM_NR_FENCE_EVENTFD			0x73
#define VIDMM_NR_FENCE_EXPORT			0x74
#define VIDMM_NR_FENCE_IMPORT			0x75
#define VIDMM_NR_EXPORT				0x80
#define VIDMM_NR_IMPORT				0x81
#define VIDMM_NR_SCANOUT			0x90

/**
 * DOC: Lists
 *
 * Special values of &struct vidmm_array, and of every field that names an
 * element of one.
 *
 * %VIDMM_HANDLE_STRIDE
 *   ``stride`` of a plain list of ``u32`` handles, and the least one that is
 *   accepted.
 * %VIDMM_FAIL_INDEX_NONE
 *   Value of ``fail_index`` on success, and when no single element is to blame.
 */
#define VIDMM_HANDLE_STRIDE			4
#define VIDMM_FAIL_INDEX_NONE			0xffffffffU

/**
 * struct vidmm_array - A list of elements in user memory.
 * @ptr: [in] User address of the first element; 0 only when @count is 0.
 * @count: [in] Number of elements.
 * @stride: [in] Bytes per element as the caller knows it; at least the first
 *   published element size, %VIDMM_HANDLE_STRIDE for plain handle lists.
 *
 * The size rules of an argument hold for every element, with @stride in the
 * place of the size in the command. A @count of 0 with @ptr 0 is an empty list;
 * @count 0 with @ptr set is %EINVAL, @ptr 0 with @count set is %EFAULT. @stride
 * is a multiple of 8, or of 4 when the element has no 64-bit field. Counts are
 * checked against the limits of &struct vidmm_info_limits before any memory is
 * taken (%EINVAL); products and sums are checked for overflow (%EOVERFLOW). No
 * list points to another list.
 *
 * An empty list is %EINVAL where the list is what the call is for: CLOSE,
 * ALLOC_CREATE, ALLOC_QUERY, SET_PRIORITY, MAKE_RESIDENT, EVICT, OFFER,
 * RECLAIM, VA_UPDATE, FENCE_SIGNAL, FENCE_WAIT.
 */
struct vidmm_array {
	__u64 ptr;
	__u32 count;
	__u32 stride;
};

/**
 * struct vidmm_point - A value of a fence, to be waited for or signalled.
 * @fence: [in] Fence handle.
 * @flags: [in] Must be zero.
 * @value: [in] Fence value.
 */
struct vidmm_point {
	__u32 fence;
	__u32 flags;
	__u64 value;
};
#define VIDMM_POINT_SIZE_FIRST			16

/**
 * DOC: Mapping offsets
 *
 * Offsets that calls return lie between MIN and END, so that 32-bit programs
 * can pass them. Only ``MAP_SHARED`` is allowed.
 *
 * %VIDMM_MMAP_OFFSET_STATUS_PAGE
 *   The &struct vidmm_status_page of this client: one page, read-only. Needs
 *   %VIDMM_FEATURE_STATUS_PAGE.
 * %VIDMM_MMAP_OFFSET_MIN
 *   Least offset that a call returns.
 * %VIDMM_MMAP_OFFSET_END
 *   End of the offsets.
 */
#define VIDMM_MMAP_OFFSET_STATUS_PAGE		0
#define VIDMM_MMAP_OFFSET_MIN			(1ULL << 32)
#define VIDMM_MMAP_OFFSET_END			(1ULL << 44)

/**
 * DOC: Deadlines
 *
 * A special value of every ``deadline_ns``. Deadlines are absolute nanoseconds
 * of CLOCK_MONOTONIC; 0 polls, a negative one is %EINVAL.
 *
 * %VIDMM_WAIT_FOREVER
 *   Waits for ever.
 */
#define VIDMM_WAIT_FOREVER			0x7fffffffffffffffLL

/**
 * DOC: Interface version
 *
 * Fields ``uapi_major`` and ``uapi_minor`` of &struct vidmm_info_adapter.
 * Nothing may test them to decide behaviour; feature bits and the IOCTL record
 * are for that.
 *
 * %VIDMM_UAPI_MAJOR
 *   Changes only if an old number changes meaning, which must not happen.
 * %VIDMM_UAPI_MINOR
 *   Rises with every addition.
 */
#define VIDMM_UAPI_MAJOR			1
#define VIDMM_UAPI_MINOR			0

/**
 * DOC: Queries
 *
 * Values of ``query`` in &struct vidmm_query. The record of each is &struct
 * vidmm_info_adapter and so on, after the name.
 *
 * %VIDMM_QUERY_ADAPTER
 *   The adapter; ``index`` is zero.
 * %VIDMM_QUERY_SEGMENT
 *   A segment; ``index`` is its id, 0 is system memory.
 * %VIDMM_QUERY_NODE
 *   A node; ``index`` is its ordinal.
 * %VIDMM_QUERY_IOCTL
 *   A call; ``index`` is its ioctl number. %ENOENT for a number that does not
 *   exist.
 * %VIDMM_QUERY_LIMITS
 *   Limits of lists and queues; ``index`` is zero.
 * %VIDMM_QUERY_CLOCK
 *   CPU and GPU clock at one moment; ``index`` is zero.
 * %VIDMM_QUERY_SOURCE
 *   A display source; ``index`` is its id. Needs %VIDMM_FEATURE_SCANOUT.
 * %VIDMM_QUERY_CLIENT
 *   Counters of this client; ``index`` is zero.
 */
#define VIDMM_QUERY_ADAPTER			0
#define VIDMM_QUERY_SEGMENT			1
#define VIDMM_QUERY_NODE			2
#define VIDMM_QUERY_IOCTL			3
#define VIDMM_QUERY_LIMITS			4
#define VIDMM_QUERY_CLOCK			5
#define VIDMM_QUERY_SOURCE			6
#define VIDMM_QUERY_CLIENT			7

/**
 * struct vidmm_query - Argument of QUERY.
 * @query: [in] What to read, a %VIDMM_QUERY_ADAPTER and so on.
 * @index: [in] Segment id (0 is system memory), node ordinal, ioctl number or
 *   source id, according to @query; otherwise zero.
 * @data: [in] Destination address, ignored when @size is 0.
 * @size: [in/out] Capacity of @data; on return the size this kernel has for
 *   that record.
 * @flags: [in] Must be zero.
 *
 * With @size 0 only the record size is returned. Otherwise the smaller of @size
 * and the record size is copied, and @size is set to the record size: shorter
 * and longer records are both fine. An unknown @query is %EOPNOTSUPP, an @index
 * out of range is %ENOENT.
 */
struct vidmm_query {
	__u32 query;
	__u32 index;
	__u64 data;
	__u32 size;
	__u32 flags;
};
#define VIDMM_QUERY_SIZE_FIRST			24

/**
 * DOC: Feature bits
 *
 * Bits of ``features`` in &struct vidmm_info_adapter. A bit is set when
 * everything it names works; until then the calls, flags and fields it names
 * answer %EOPNOTSUPP.
 *
 * %VIDMM_FEATURE_PATCHED
 *   Contexts of mode PATCHED_LIST and PATCHED_EXPLICIT, SUBMIT_PATCHED.
 * %VIDMM_FEATURE_SPLIT
 *   Submissions are cut under memory pressure. Without it, what does not fit as
 *   a whole is %ENOSPC.
 * %VIDMM_FEATURE_VIRTUAL
 *   Contexts of mode VIRTUAL, SUBMIT_VIRTUAL, VA_RESERVE, VA_FREE, VA_MAP,
 *   VA_QUERY.
 * %VIDMM_FEATURE_TILES
 *   VA_UPDATE, %VIDMM_ALLOC_TILE_POOL, companion contexts.
 * %VIDMM_FEATURE_RENAME
 *   %VIDMM_ALLOC_RENAMABLE, %VIDMM_LOCK_DISCARD.
 * %VIDMM_FEATURE_RENAME_USERPICK
 *   The busy table, %VIDMM_SUBMIT_ALLOC_KEEP_INSTANCE.
 * %VIDMM_FEATURE_BUDGET_EVENTS
 *   BUDGET, RESERVE_BUDGET, EVENTS.
 * %VIDMM_FEATURE_OFFER
 *   OFFER, RECLAIM.
 * %VIDMM_FEATURE_HOST_APERTURE
 *   At least one segment is larger than the window through which the CPU sees
 *   it.
 * %VIDMM_FEATURE_ACCESSED_PHYSICALLY
 *   %VIDMM_ALLOC_ACCESSED_PHYSICALLY.
 * %VIDMM_FEATURE_SYNC_FILE
 *   FENCE_EXPORT and FENCE_IMPORT of kind SYNC_FILE.
 * %VIDMM_FEATURE_DMABUF_EXPORT
 *   EXPORT, %VIDMM_ALLOC_SHAREABLE.
 * %VIDMM_FEATURE_DMABUF_IMPORT
 *   IMPORT.
 * %VIDMM_FEATURE_SCANOUT
 *   %VIDMM_ALLOC_PRIMARY, SCANOUT, %VIDMM_QUERY_SOURCE.
 * %VIDMM_FEATURE_CGROUP
 *   Segments are regions of the device-memory controller. Later.
 * %VIDMM_FEATURE_RECOVERY
 *   A node is reset after a timeout.
 * %VIDMM_FEATURE_USER_MEMORY
 *   %VIDMM_ALLOC_USER_MEMORY, ``user_addr``. Later.
 * %VIDMM_FEATURE_STATUS_PAGE
 *   The status page at mapping offset 0.
 * %VIDMM_FEATURE_SWAPPABLE
 *   %VIDMM_ALLOC_SWAPPABLE.
 * %VIDMM_FEATURE_WRITE_SEGMENTS
 *   ``write_segments`` different from ``read_segments``. Later.
 * %VIDMM_FEATURE_EVICT_SEGMENTS
 *   ``evict_segments`` other than zero. Later.
 * %VIDMM_FEATURE_ALLOC_UPDATE
 *   ALLOC_UPDATE. Later.
 * %VIDMM_FEATURE_CACHING
 *   %VIDMM_ALLOC_CACHING_WRITE_COMBINED, %VIDMM_ALLOC_CACHING_UNCACHED. Later.
 * %VIDMM_FEATURE_VA_PROTECT
 *   Operation PROTECT of VA_UPDATE. Later.
 * %VIDMM_FEATURE_LAST_USE
 *   %VIDMM_SUBMIT_ALLOC_LAST_USE. Later.
 * %VIDMM_FEATURE_COMPANION_CHOICE
 *   ``companion_node`` named by the caller. Later.
 * %VIDMM_FEATURE_SPLIT_ADDRESS
 *   %VIDMM_SUBMIT_PATCH_KIND_LOW32, %VIDMM_SUBMIT_PATCH_KIND_HIGH32. Later.
 * %VIDMM_FEATURE_FENCE_SHARE
 *   %VIDMM_FENCE_SHARED, FENCE_EXPORT and FENCE_IMPORT of kind SHARE_FD.
 * %VIDMM_FEATURE_PERIODIC_TRIM
 *   Trim requests on a timer. Later.
 */
#define VIDMM_FEATURE_PATCHED			(1ULL << 0)
#define VIDMM_FEATURE_SPLIT			(1ULL << 1)
#define VIDMM_FEATURE_VIRTUAL			(1ULL << 2)
#define VIDMM_FEATURE_TILES			(1ULL << 3)
#define VIDMM_FEATURE_RENAME			(1ULL << 4)
#define VIDMM_FEATURE_RENAME_USERPICK		(1ULL << 5)
#define VIDMM_FEATURE_BUDGET_EVENTS		(1ULL << 6)
#define VIDMM_FEATURE_OFFER			(1ULL << 7)
#define VIDMM_FEATURE_HOST_APERTURE		(1ULL << 8)
#define VIDMM_FEATURE_ACCESSED_PHYSICALLY	(1ULL << 9)
#define VIDMM_FEATURE_SYNC_FILE			(1ULL << 10)
#define VIDMM_FEATURE_DMABUF_EXPORT		(1ULL << 11)
#define VIDMM_FEATURE_DMABUF_IMPORT		(1ULL << 12)
#define VIDMM_FEATURE_SCANOUT			(1ULL << 13)
#define VIDMM_FEATURE_CGROUP			(1ULL << 14)
#define VIDMM_FEATURE_RECOVERY			(1ULL << 15)
#define VIDMM_FEATURE_USER_MEMORY		(1ULL << 16)
#define VIDMM_FEATURE_STATUS_PAGE		(1ULL << 17)
#define VIDMM_FEATURE_SWAPPABLE			(1ULL << 18)
#define VIDMM_FEATURE_WRITE_SEGMENTS		(1ULL << 19)
#define VIDMM_FEATURE_EVICT_SEGMENTS		(1ULL << 20)
#define VIDMM_FEATURE_ALLOC_UPDATE		(1ULL << 21)
#define VIDMM_FEATURE_CACHING			(1ULL << 22)
#define VIDMM_FEATURE_VA_PROTECT		(1ULL << 23)
#define VIDMM_FEATURE_LAST_USE			(1ULL << 24)
#define VIDMM_FEATURE_COMPANION_CHOICE		(1ULL << 25)
#define VIDMM_FEATURE_SPLIT_ADDRESS		(1ULL << 26)
#define VIDMM_FEATURE_FENCE_SHARE		(1ULL << 27)
#define VIDMM_FEATURE_PERIODIC_TRIM		(1ULL << 28)

/**
 * DOC: Adapter states
 *
 * Values of ``state`` in &struct vidmm_info_adapter.
 *
 * %VIDMM_ADAPTER_STATE_RUNNING
 *   The adapter works.
 * %VIDMM_ADAPTER_STATE_SUSPENDED
 *   The machine sleeps or is about to.
 * %VIDMM_ADAPTER_STATE_RESETTING
 *   An adapter reset is under way.
 * %VIDMM_ADAPTER_STATE_GONE
 *   The adapter was removed.
 */
#define VIDMM_ADAPTER_STATE_RUNNING		0
#define VIDMM_ADAPTER_STATE_SUSPENDED		1
#define VIDMM_ADAPTER_STATE_RESETTING		2
#define VIDMM_ADAPTER_STATE_GONE		3

/**
 * struct vidmm_info_adapter - Record of %VIDMM_QUERY_ADAPTER.
 * @uapi_major: [out] Changes only if an old number changes meaning, which must
 *   not happen.
 * @uapi_minor: [out] Rises with every addition; for humans, not for feature
 *   tests.
 * @adapter_id: [out] Identity of this adapter until unload.
 * @reset_count: [out] Adapter resets since load.
 * @state: [out] Adapter state, %VIDMM_ADAPTER_STATE_RUNNING and so on.
 * @page_size: [out] Smallest GPU page.
 * @large_page_size: [out] Largest GPU page, 0 if none.
 * @segments: [out] Number of segments, ids 1..n; system memory, id 0, is not
 *   counted.
 * @nodes: [out] Number of nodes, ordinals 0..n-1.
 * @sources: [out] Number of display sources.
 * @patch_slots: [out] Binding slots per patched buffer
 *   (MaxAllocationListSlotId: slots 0..n-1).
 * @va_start: [out] First usable GPU virtual address.
 * @va_end: [out] End of the space.
 * @features: [out] Feature bits.
 * @features_hi: [out] More feature bits.
 */
struct vidmm_info_adapter {
	__u32 uapi_major;
	__u32 uapi_minor;
	__u64 adapter_id;
	__u32 reset_count;
	__u32 state;
	__u32 page_size;
	__u32 large_page_size;
	__u32 segments;
	__u32 nodes;
	__u32 sources;
	__u32 patch_slots;
	__u64 va_start;
	__u64 va_end;
	__u64 features;
	__u64 features_hi;
};

/**
 * DOC: Segment kinds
 *
 * Values of ``kind`` in &struct vidmm_info_segment.
 *
 * %VIDMM_SEGMENT_KIND_MEMORY
 *   Memory of the adapter.
 * %VIDMM_SEGMENT_KIND_APERTURE
 *   A range of addresses behind which system pages are mapped. There is exactly
 *   one.
 * %VIDMM_SEGMENT_KIND_SYSTEM
 *   System memory, where backing store lives. Only %VIDMM_SEGMENT_ID_SYSTEM.
 */
#define VIDMM_SEGMENT_KIND_MEMORY		1
#define VIDMM_SEGMENT_KIND_APERTURE		2
#define VIDMM_SEGMENT_KIND_SYSTEM		3

/**
 * DOC: Segment flags
 *
 * Bits of ``flags`` in &struct vidmm_info_segment.
 *
 * %VIDMM_SEGMENT_CPU_VISIBLE
 *   The CPU can map it.
 * %VIDMM_SEGMENT_HOST_APERTURE
 *   The CPU sees it through a window smaller than the segment.
 * %VIDMM_SEGMENT_CACHE_COHERENT
 *   CPU caches need no maintenance.
 * %VIDMM_SEGMENT_CONTIGUOUS_ONLY
 *   Holds contiguous allocations only. Never set in this version.
 * %VIDMM_SEGMENT_SCANOUT
 *   Primaries in it can be shown.
 * %VIDMM_SEGMENT_BUDGETED
 *   Counts towards the budget of its group.
 */
#define VIDMM_SEGMENT_CPU_VISIBLE		(1U << 0)
#define VIDMM_SEGMENT_HOST_APERTURE		(1U << 1)
#define VIDMM_SEGMENT_CACHE_COHERENT		(1U << 2)
#define VIDMM_SEGMENT_CONTIGUOUS_ONLY		(1U << 3)
#define VIDMM_SEGMENT_SCANOUT			(1U << 4)
#define VIDMM_SEGMENT_BUDGETED			(1U << 5)

/**
 * DOC: Segment groups
 *
 * Values of ``group`` in &struct vidmm_info_segment, and in the arguments of
 * BUDGET and RESERVE_BUDGET.
 *
 * %VIDMM_GROUP_LOCAL
 *   Memory segments.
 * %VIDMM_GROUP_NON_LOCAL
 *   The aperture and system memory.
 */
#define VIDMM_GROUP_LOCAL			0
#define VIDMM_GROUP_NON_LOCAL			1

/**
 * DOC: Segment ids
 *
 * Special ids of a segment. All others count from 1; bit n of a segment mask
 * stands for id n.
 *
 * %VIDMM_SEGMENT_ID_SYSTEM
 *   System memory; not counted in ``segments`` of the ADAPTER record.
 * %VIDMM_SEGMENT_ID_NONE
 *   No segment: not resident, or nothing presumed.
 */
#define VIDMM_SEGMENT_ID_SYSTEM			0
#define VIDMM_SEGMENT_ID_NONE			0xffffffffU

/**
 * struct vidmm_info_segment - Record of %VIDMM_QUERY_SEGMENT.
 * @id: [out] Segment id.
 * @kind: [out] Segment kind.
 * @flags: [out] Segment flags.
 * @group: [out] Segment group, %VIDMM_GROUP_LOCAL or %VIDMM_GROUP_NON_LOCAL.
 * @base: [out] First GPU physical address; 0 for id 0.
 * @size: [out] Bytes of address space.
 * @commit_limit: [out] Bytes that may be committed.
 * @cpu_window: [out] Bytes the CPU can see at once: 0, less than @size (host
 *   aperture), or @size.
 * @used: [out] Bytes in use by everybody: occupied in a memory segment, mapped
 *   in the aperture, pinned for residency in system memory; 0 without
 *   CAP_PERFMON.
 * @largest_free: [out] Longest free run; 0 without CAP_PERFMON.
 * @own: [out] Bytes in use by this client, counted as in @used.
 * @page_size: [out] Allocation granularity.
 * @contiguous: [out] Bytes of the part that is contiguous in page frames: the
 *   only place for ACCESSED_PHYSICALLY allocations and primaries.
 */
struct vidmm_info_segment {
	__u32 id;
	__u32 kind;
	__u32 flags;
	__u32 group;
	__u64 base;
	__u64 size;
	__u64 commit_limit;
	__u64 cpu_window;
	__u64 used;
	__u64 largest_free;
	__u64 own;
	__u64 page_size;
	__u64 contiguous;
};

/**
 * DOC: Node kinds
 *
 * Values of ``kind`` in &struct vidmm_info_node.
 *
 * %VIDMM_NODE_KIND_RENDER
 *   Rendering.
 * %VIDMM_NODE_KIND_COMPUTE
 *   Computing.
 * %VIDMM_NODE_KIND_COPY
 *   Copying.
 * %VIDMM_NODE_KIND_PAGING
 *   Paging; only the kernel uses it.
 */
#define VIDMM_NODE_KIND_RENDER			1
#define VIDMM_NODE_KIND_COMPUTE			2
#define VIDMM_NODE_KIND_COPY			3
#define VIDMM_NODE_KIND_PAGING			4

/**
 * DOC: Node flags
 *
 * Bits of ``flags`` in &struct vidmm_info_node.
 *
 * %VIDMM_NODE_PREEMPTIBLE
 *   Work gives way between two portions.
 * %VIDMM_NODE_SPLIT
 *   A submission may be cut. Set wherever %VIDMM_CONTEXT_MODE_PATCHED_LIST is
 *   offered.
 * %VIDMM_NODE_FENCE_64BIT
 *   Fence values are 64 bits wide in hardware.
 * %VIDMM_NODE_SAVES_CONTEXT
 *   Registers survive other buffers on the node.
 */
#define VIDMM_NODE_PREEMPTIBLE			(1U << 0)
#define VIDMM_NODE_SPLIT			(1U << 1)
#define VIDMM_NODE_FENCE_64BIT			(1U << 2)
#define VIDMM_NODE_SAVES_CONTEXT		(1U << 3)

/**
 * DOC: Node ordinals
 *
 * A special value of every field that holds the ordinal of a node.
 *
 * %VIDMM_NODE_NONE
 *   No node.
 */
#define VIDMM_NODE_NONE				0xffffffffU

/**
 * struct vidmm_info_node - Record of %VIDMM_QUERY_NODE.
 * @ordinal: [out] Node ordinal.
 * @kind: [out] Node kind.
 * @modes: [out] Bit mask of context modes (bit = mode); 0 for nodes that only
 *   the kernel uses.
 * @flags: [out] Node flags.
 * @companion_node: [out] Node on which companion contexts run, %VIDMM_NODE_NONE
 *   if none is needed.
 * @timeout_ms: [out] Default time limit of one buffer.
 * @max_dma_bytes: [out] Longest patched command buffer.
 * @max_allocs: [out] Longest allocation list.
 * @max_patches: [out] Longest patch list.
 * @max_points: [out] Longest wait or signal list.
 */
struct vidmm_info_node {
	__u32 ordinal;
	__u32 kind;
	__u32 modes;
	__u32 flags;
	__u32 companion_node;
	__u32 timeout_ms;
	__u32 max_dma_bytes;
	__u32 max_allocs;
	__u32 max_patches;
	__u32 max_points;
};

/**
 * struct vidmm_info_ioctl - Record of %VIDMM_QUERY_IOCTL.
 * @nr: [out] The number asked about.
 * @supported: [out] 1 if this kernel implements it.
 * @size_first: [out] Smallest accepted argument size.
 * @size_known: [out] Argument size this kernel fully understands.
 * @flags_known: [out] Bits of the argument's ``flags`` that are understood.
 *
 * This record is how a program learns whether a flag or a field exists before
 * it uses it. No call has to be tried out.
 */
struct vidmm_info_ioctl {
	__u32 nr;
	__u32 supported;
	__u32 size_first;
	__u32 size_known;
	__u64 flags_known;
};

/**
 * struct vidmm_info_limits - Record of %VIDMM_QUERY_LIMITS.
 * @handles_per_list: [out] Longest handle list.
 * @allocs_per_create: [out] Longest creation list.
 * @rename_max: [out] Most instances of one allocation.
 * @va_ops: [out] Longest VA_UPDATE list.
 * @va_updates_queued: [out] VA_UPDATE calls that may be queued per context.
 * @submissions_remembered: [out] Finished submissions SUBMIT_QUERY can still
 *   see.
 * @events_queued: [out] Events kept before OVERFLOW.
 * @objects: [out] Handles one client may hold.
 *
 * Guaranteed at least: 16384 handles per list, 1024 creations, 1024 instances,
 * 65536 address operations, 256 remembered submissions, 256 events, 2097152
 * objects. Queued updates are 128 everywhere. @handles_per_list also bounds the
 * lists that have no limit of their own.
 */
struct vidmm_info_limits {
	__u32 handles_per_list;
	__u32 allocs_per_create;
	__u32 rename_max;
	__u32 va_ops;
	__u32 va_updates_queued;
	__u32 submissions_remembered;
	__u32 events_queued;
	__u32 objects;
};

/**
 * struct vidmm_info_clock - Record of %VIDMM_QUERY_CLOCK.
 * @cpu_ns: [out] CLOCK_MONOTONIC.
 * @gpu_ticks: [out] GPU counter at the same moment.
 * @gpu_hz: [out] Its frequency.
 * @uncertainty_ns: [out] Width of the sampling window.
 */
struct vidmm_info_clock {
	__u64 cpu_ns;
	__u64 gpu_ticks;
	__u64 gpu_hz;
	__u64 uncertainty_ns;
};

/**
 * DOC: Source flags
 *
 * Bits of ``flags`` in &struct vidmm_info_source.
 *
 * %VIDMM_SOURCE_ENABLED
 *   Something is shown on the source.
 * %VIDMM_SOURCE_OWNED
 *   A client owns the source.
 */
#define VIDMM_SOURCE_ENABLED			(1U << 0)
#define VIDMM_SOURCE_OWNED			(1U << 1)

/**
 * struct vidmm_info_source - Record of %VIDMM_QUERY_SOURCE.
 * @source: [out] Source id.
 * @flags: [out] Source flags.
 * @alloc: [out] Primary shown now if it belongs to this client, otherwise 0.
 * @pitch_align: [out] Required alignment of ``pitch``.
 * @max_width: [out] Pixels.
 * @max_height: [out] Lines.
 * @sequence: [out] Last accepted SCANOUT sequence.
 */
struct vidmm_info_source {
	__u32 source;
	__u32 flags;
	__u32 alloc;
	__u32 pitch_align;
	__u32 max_width;
	__u32 max_height;
	__u64 sequence;
};

/**
 * struct vidmm_info_client - Record of %VIDMM_QUERY_CLIENT.
 * @client_id: [out] The number shown in fdinfo.
 * @evictions: [out] Allocations of this client pushed out.
 * @paged_in: [out] Bytes.
 * @paged_out: [out] Bytes.
 * @renames: [out] DISCARD locks answered with another instance.
 * @rename_waits: [out] DISCARD locks that had to wait.
 * @splits: [out] Extra portions caused by splitting.
 * @discarded: [out] Offered bytes thrown away.
 * @backing: [out] Bytes of backing store charged to this client.
 */
struct vidmm_info_client {
	__u64 client_id;
	__u64 evictions;
	__u64 paged_in;
	__u64 paged_out;
	__u64 renames;
	__u64 rename_waits;
	__u64 splits;
	__u64 discarded;
	__u64 backing;
};

/**
 * DOC: Names
 *
 * The limit of SET_NAME.
 *
 * %VIDMM_SET_NAME_MAX
 *   Longest name in bytes, without terminator.
 */
#define VIDMM_SET_NAME_MAX			63

/**
 * struct vidmm_set_name - Argument of SET_NAME.
 * @object: [in] Object handle, or 0 to name the client itself.
 * @len: [in] Length without terminator, 0 clears the name, at most
 *   %VIDMM_SET_NAME_MAX.
 * @ptr: [in] Printable ASCII, no white space.
 *
 * Names appear in fdinfo, debug files, dumps and the visualiser.
 */
struct vidmm_set_name {
	__u32 object;
	__u32 len;
	__u64 ptr;
};
#define VIDMM_SET_NAME_SIZE_FIRST		16

/**
 * DOC: CLOSE flags
 *
 * Bits of ``flags`` in &struct vidmm_close.
 *
 * %VIDMM_CLOSE_SYNC
 *   Return only when the storage is really gone.
 */
#define VIDMM_CLOSE_SYNC			(1U << 0)

/**
 * struct vidmm_close - Argument of CLOSE.
 * @handles: [in] ``u32`` handles, mixed types allowed.
 * @flags: [in] CLOSE flags.
 * @fail_index: [out!] Index of the handle that was refused.
 *
 * Drops the names at once. Storage goes when the last of these is gone:
 * handles, queued work that uses it, CPU mappings, dma-buf descriptors and
 * attachments, GPU virtual address mappings. Closing a device closes what it
 * owns.
 *
 * Also: %EBUSY for a primary that is on screen, and for a paging fence alone.
 */
struct vidmm_close {
	struct vidmm_array handles;
	__u32 flags;
	__u32 fail_index;
};
#define VIDMM_CLOSE_SIZE_FIRST			24

/**
 * struct vidmm_device_create - Argument of DEVICE_CREATE.
 * @flags: [in] Must be zero.
 * @device: [out] Device handle.
 */
struct vidmm_device_create {
	__u32 flags;
	__u32 device;
};
#define VIDMM_DEVICE_CREATE_SIZE_FIRST		8

/**
 * DOC: Device states
 *
 * Values of ``state`` in &struct vidmm_device_state.
 *
 * %VIDMM_DEVICE_STATE_ACTIVE
 *   The device works.
 * %VIDMM_DEVICE_STATE_RESET
 *   An adapter reset took the device along.
 * %VIDMM_DEVICE_STATE_HUNG
 *   A portion ran beyond its time limit.
 * %VIDMM_DEVICE_STATE_STOPPED
 *   Not used in this version.
 * %VIDMM_DEVICE_STATE_ERROR_MEMORY
 *   A MUST_SUCCEED failed, or a portion could not be placed at run time.
 * %VIDMM_DEVICE_STATE_ERROR_DMA
 *   A packet or address turned out wrong at run time, or a PATCHED_EXPLICIT
 *   list named something that is not on the residency list.
 * %VIDMM_DEVICE_STATE_ERROR_FAULT
 *   A GPU page fault.
 * %VIDMM_DEVICE_STATE_ADAPTER_GONE
 *   The adapter was removed.
 */
#define VIDMM_DEVICE_STATE_ACTIVE		1
#define VIDMM_DEVICE_STATE_RESET		2
#define VIDMM_DEVICE_STATE_HUNG			3
#define VIDMM_DEVICE_STATE_STOPPED		4
#define VIDMM_DEVICE_STATE_ERROR_MEMORY		5
#define VIDMM_DEVICE_STATE_ERROR_DMA		6
#define VIDMM_DEVICE_STATE_ERROR_FAULT		7
#define VIDMM_DEVICE_STATE_ADAPTER_GONE		8

/**
 * DOC: Fault flags
 *
 * Bits of ``fault_flags`` in &struct vidmm_device_state.
 *
 * %VIDMM_DEVICE_STATE_FAULT_READ
 *   The access read.
 * %VIDMM_DEVICE_STATE_FAULT_WRITE
 *   The access wrote.
 * %VIDMM_DEVICE_STATE_FAULT_NOT_MAPPED
 *   Nothing is mapped at the address.
 * %VIDMM_DEVICE_STATE_FAULT_NOT_RESIDENT
 *   A mapping exists and the memory is away.
 * %VIDMM_DEVICE_STATE_FAULT_PROTECTION
 *   The mapping does not allow the access.
 * %VIDMM_DEVICE_STATE_FAULT_FENCE_INVALID
 *   A write to a fence page other than 8 bytes to a ``value``.
 */
#define VIDMM_DEVICE_STATE_FAULT_READ		(1U << 0)
#define VIDMM_DEVICE_STATE_FAULT_WRITE		(1U << 1)
#define VIDMM_DEVICE_STATE_FAULT_NOT_MAPPED	(1U << 2)
#define VIDMM_DEVICE_STATE_FAULT_NOT_RESIDENT	(1U << 3)
#define VIDMM_DEVICE_STATE_FAULT_PROTECTION	(1U << 4)
#define VIDMM_DEVICE_STATE_FAULT_FENCE_INVALID	(1U << 5)

/**
 * struct vidmm_device_state - Argument of DEVICE_STATE.
 * @device: [in] Device handle.
 * @flags: [in] Must be zero.
 * @state: [out] Device state, %VIDMM_DEVICE_STATE_ACTIVE and so on.
 * @guilty: [out] 1 if this device caused it, 0 if it was a bystander.
 * @context: [out] Context that was running, 0 if none.
 * @node: [out] Node ordinal, %VIDMM_NODE_NONE if none.
 * @submission: [out] Submission id that was running.
 * @fault_va: [out] ERROR_FAULT: faulting GPU virtual address; ERROR_DMA: byte
 *   offset of the packet in its buffer; otherwise 0.
 * @fault_flags: [out] Fault flags.
 * @reset_count: [out] Adapter resets since load.
 * @time_ns: [out] CLOCK_MONOTONIC time of the event.
 *
 * Works in every state, also after the adapter is gone.
 */
struct vidmm_device_state {
	__u32 device;
	__u32 flags;
	__u32 state;
	__u32 guilty;
	__u32 context;
	__u32 node;
	__u64 submission;
	__u64 fault_va;
	__u32 fault_flags;
	__u32 reset_count;
	__u64 time_ns;
};
#define VIDMM_DEVICE_STATE_SIZE_FIRST		56

/**
 * struct vidmm_alloc_create - Argument of ALLOC_CREATE.
 * @device: [in] Device handle.
 * @flags: [in] Must be zero.
 * @infos: [in] Array of &struct vidmm_alloc_info.
 * @fail_index: [out!] First element refused; nothing has been created in that
 *   case.
 * @pad: [in] Must be zero.
 *
 * Creation commits no pages: the thread that first needs them takes them.
 * Contents start as zero; no client ever sees data of another.
 *
 * Also: %ENOSPC when no permitted segment could ever hold it, %EINVAL for
 * excluded combinations, segment id 0, unknown segments, a preference outside
 * the set.
 */
struct vidmm_alloc_create {
	__u32 device;
	__u32 flags;
	struct vidmm_array infos;
	__u32 fail_index;
	__u32 pad;
};
#define VIDMM_ALLOC_CREATE_SIZE_FIRST		32

/**
 * DOC: Allocation flags
 *
 * Bits of ``flags`` in &struct vidmm_alloc_info. A flag of a missing feature is
 * refused like an unknown one.
 *
 * %VIDMM_ALLOC_CPU_VISIBLE
 *   The CPU will map it.
 * %VIDMM_ALLOC_ACCESSED_PHYSICALLY
 *   A rendering engine will use physical addresses: one run of addresses, and
 *   of page frames, in a memory segment; an aperture range for as long as it is
 *   resident in system memory. Only these may be named in the list of a patched
 *   submission (%EACCES).
 * %VIDMM_ALLOC_RENAMABLE
 *   %VIDMM_LOCK_DISCARD may give another instance. Not with USER_MEMORY,
 *   PRIMARY, TILE_POOL, SHAREABLE (%EINVAL).
 * %VIDMM_ALLOC_USER_MEMORY
 *   Backed by ``user_addr``: system memory only, nothing to evict to. Later.
 * %VIDMM_ALLOC_READ_ONLY
 *   The GPU must not write it.
 * %VIDMM_ALLOC_PRIMARY
 *   May be shown; restricted by the kernel to segments with
 *   %VIDMM_SEGMENT_SCANOUT.
 * %VIDMM_ALLOC_TILE_POOL
 *   Source of tile mappings; kept mapped in the privileged address space.
 * %VIDMM_ALLOC_SHAREABLE
 *   May be exported.
 * %VIDMM_ALLOC_SWAPPABLE
 *   Pages behind it may be swapped while it is neither resident nor locked. Not
 *   with SHAREABLE (%EINVAL).
 * %VIDMM_ALLOC_PINNED
 *   Never moves once placed. Needs ``CAP_SYS_ADMIN``.
 */
#define VIDMM_ALLOC_CPU_VISIBLE			(1U << 0)
#define VIDMM_ALLOC_ACCESSED_PHYSICALLY		(1U << 1)
#define VIDMM_ALLOC_RENAMABLE			(1U << 2)
#define VIDMM_ALLOC_USER_MEMORY			(1U << 3)
#define VIDMM_ALLOC_READ_ONLY			(1U << 4)
#define VIDMM_ALLOC_PRIMARY			(1U << 5)
#define VIDMM_ALLOC_TILE_POOL			(1U << 6)
#define VIDMM_ALLOC_SHAREABLE			(1U << 7)
#define VIDMM_ALLOC_SWAPPABLE			(1U << 8)
#define VIDMM_ALLOC_PINNED			(1U << 9)

/**
 * DOC: Priorities
 *
 * Values of ``priority`` of an allocation. In &struct vidmm_alloc_info 0 means
 * NORMAL.
 *
 * %VIDMM_ALLOC_PRIORITY_MINIMUM
 *   First to leave.
 * %VIDMM_ALLOC_PRIORITY_LOW
 *   Leaves before NORMAL.
 * %VIDMM_ALLOC_PRIORITY_NORMAL
 *   The default.
 * %VIDMM_ALLOC_PRIORITY_HIGH
 *   Leaves after NORMAL.
 * %VIDMM_ALLOC_PRIORITY_MAXIMUM
 *   Last to leave.
 */
#define VIDMM_ALLOC_PRIORITY_MINIMUM		1
#define VIDMM_ALLOC_PRIORITY_LOW		2
#define VIDMM_ALLOC_PRIORITY_NORMAL		3
#define VIDMM_ALLOC_PRIORITY_HIGH		4
#define VIDMM_ALLOC_PRIORITY_MAXIMUM		5

/**
 * DOC: Preference list
 *
 * One byte of ``preferred`` in &struct vidmm_alloc_info: eight bytes, least
 * significant first, most wanted first; a zero byte ends the list. The other
 * bits are zero.
 *
 * %VIDMM_ALLOC_PREFERRED_SEGMENT
 *   Mask of the segment id.
 * %VIDMM_ALLOC_PREFERRED_FROM_TOP
 *   Place from the top of the segment.
 */
#define VIDMM_ALLOC_PREFERRED_SEGMENT		0x1f
#define VIDMM_ALLOC_PREFERRED_FROM_TOP		0x80

/**
 * DOC: Caching
 *
 * Values of ``caching`` in &struct vidmm_alloc_info.
 *
 * %VIDMM_ALLOC_CACHING_DEFAULT
 *   The choice of the kernel.
 * %VIDMM_ALLOC_CACHING_WRITE_BACK
 *   Cached.
 * %VIDMM_ALLOC_CACHING_WRITE_COMBINED
 *   Write-combined. Later, %VIDMM_FEATURE_CACHING.
 * %VIDMM_ALLOC_CACHING_UNCACHED
 *   Uncached. Later, %VIDMM_FEATURE_CACHING.
 */
#define VIDMM_ALLOC_CACHING_DEFAULT		0
#define VIDMM_ALLOC_CACHING_WRITE_BACK		1
#define VIDMM_ALLOC_CACHING_WRITE_COMBINED	2
#define VIDMM_ALLOC_CACHING_UNCACHED		3

/**
 * struct vidmm_alloc_info - One allocation of ALLOC_CREATE.
 * @size: [in] Bytes, not zero; rounded up to the page size of every permitted
 *   segment.
 * @align: [in] Power of two or 0 for the segment default.
 * @flags: [in] Allocation flags.
 * @handle: [out] Allocation handle.
 * @read_segments: [in] Bit mask (bit = id) of the segments it may be in; the
 *   aperture's bit means system memory; bit 0 must be clear; 0 means any.
 * @write_segments: [in] 0 or equal to @read_segments; others later.
 * @evict_segments: [in] Must be zero; later.
 * @priority: [in] %VIDMM_ALLOC_PRIORITY_MINIMUM to
 *   %VIDMM_ALLOC_PRIORITY_MAXIMUM, 0 means NORMAL.
 * @preferred: [in] Preference list.
 * @caching: [in] Caching, %VIDMM_ALLOC_CACHING_DEFAULT or
 *   %VIDMM_ALLOC_CACHING_WRITE_BACK.
 * @rename_max: [in] Most instances, the original counted (1 never renames); 0
 *   sets no limit but the one of &struct vidmm_info_limits and memory.
 * @user_addr: [in] Page-aligned address of existing memory.
 * @object_id: [out] Number unique on this adapter until unload, for duplicate
 *   detection.
 * @mmap_offset: [out] First mapping offset, 0 without CPU_VISIBLE.
 * @mmap_span: [out] Bytes that may be mapped from there (@slot_stride times
 *   instance limit).
 * @slot_stride: [out] Distance between instances inside the span.
 * @busy_offset: [out] Mapping offset of the busy table, 0 unless feature
 *   RENAME_USERPICK and RENAMABLE.
 * @width: [in] Pixels.
 * @height: [in] Lines.
 * @pitch: [in/out] Bytes per line, 0 asks the kernel to choose.
 * @format: [in] Four-character code.
 *
 * The last four fields are for %VIDMM_ALLOC_PRIMARY, @rename_max is for
 * %VIDMM_ALLOC_RENAMABLE, @user_addr is for %VIDMM_ALLOC_USER_MEMORY; otherwise
 * they are zero.
 */
struct vidmm_alloc_info {
	__u64 size;
	__u64 align;
	__u32 flags;
	__u32 handle;
	__u32 read_segments;
	__u32 write_segments;
	__u32 evict_segments;
	__u32 priority;
	__u64 preferred;
	__u32 caching;
	__u32 rename_max;
	__u64 user_addr;
	__u64 object_id;
	__u64 mmap_offset;
	__u64 mmap_span;
	__u64 slot_stride;
	__u64 busy_offset;
	__u32 width;
	__u32 height;
	__u32 pitch;
	__u32 format;
};
#define VIDMM_ALLOC_INFO_SIZE_FIRST		120

/**
 * struct vidmm_alloc_query - Argument of ALLOC_QUERY.
 * @items: [in/out] Array of &struct vidmm_alloc_state.
 * @flags: [in] Must be zero.
 * @fail_index: [out!] Element with the unknown handle.
 *
 * A snapshot. Asking never moves anything.
 */
struct vidmm_alloc_query {
	struct vidmm_array items;
	__u32 flags;
	__u32 fail_index;
};
#define VIDMM_ALLOC_QUERY_SIZE_FIRST		24

/**
 * DOC: Residency
 *
 * Values of ``residency`` in &struct vidmm_alloc_state.
 *
 * %VIDMM_ALLOC_RESIDENCY_MEMORY
 *   In a memory segment.
 * %VIDMM_ALLOC_RESIDENCY_SYSTEM
 *   In system memory.
 * %VIDMM_ALLOC_RESIDENCY_NOT_RESIDENT
 *   Not resident: backing store only.
 * %VIDMM_ALLOC_RESIDENCY_DISCARDED
 *   Contents were discarded while offered.
 */
#define VIDMM_ALLOC_RESIDENCY_MEMORY		1
#define VIDMM_ALLOC_RESIDENCY_SYSTEM		2
#define VIDMM_ALLOC_RESIDENCY_NOT_RESIDENT	3
#define VIDMM_ALLOC_RESIDENCY_DISCARDED		4

/**
 * DOC: Allocation state flags
 *
 * Bits of ``flags`` in &struct vidmm_alloc_state.
 *
 * %VIDMM_ALLOC_STATE_OFFERED
 *   Offered and not reclaimed.
 * %VIDMM_ALLOC_STATE_PINNED
 *   Does not move.
 * %VIDMM_ALLOC_STATE_EXPORTED
 *   A dma-buf of it exists.
 * %VIDMM_ALLOC_STATE_IMPORTED
 *   Made by IMPORT.
 * %VIDMM_ALLOC_STATE_GPU_DIRTY
 *   Written by the GPU since backing store was last current.
 * %VIDMM_ALLOC_STATE_ON_SCREEN
 *   Shown on a source.
 * %VIDMM_ALLOC_STATE_LOCKED
 *   At least one LOCK is not undone.
 * %VIDMM_ALLOC_STATE_BUSY
 *   Queued work uses it.
 * %VIDMM_ALLOC_STATE_NO_PLACE
 *   The last MAKE_RESIDENT found no place for it when its turn came.
 */
#define VIDMM_ALLOC_STATE_OFFERED		(1U << 0)
#define VIDMM_ALLOC_STATE_PINNED		(1U << 1)
#define VIDMM_ALLOC_STATE_EXPORTED		(1U << 2)
#define VIDMM_ALLOC_STATE_IMPORTED		(1U << 3)
#define VIDMM_ALLOC_STATE_GPU_DIRTY		(1U << 4)
#define VIDMM_ALLOC_STATE_ON_SCREEN		(1U << 5)
#define VIDMM_ALLOC_STATE_LOCKED		(1U << 6)
#define VIDMM_ALLOC_STATE_BUSY			(1U << 7)
#define VIDMM_ALLOC_STATE_NO_PLACE		(1U << 8)

/**
 * struct vidmm_alloc_state - State of one allocation, element of ALLOC_QUERY.
 * @handle: [in] Allocation handle.
 * @residency: [out] Residency, %VIDMM_ALLOC_RESIDENCY_MEMORY and so on.
 * @segment: [out] Segment id: %VIDMM_SEGMENT_ID_SYSTEM in system memory, the
 *   aperture's id while it also has an aperture range, %VIDMM_SEGMENT_ID_NONE
 *   if not resident.
 * @flags: [out] Allocation state flags.
 * @priority: [out] Current priority.
 * @resident_refs: [out] Residency references held by the owning device.
 * @instances: [out] Instances that exist now.
 * @current: [out] Instance that new submissions would use.
 * @size: [out] Bytes of one instance.
 * @object_id: [out] As in &struct vidmm_alloc_info.
 * @mmap_offset: [out] As in &struct vidmm_alloc_info.
 * @mmap_span: [out] As in &struct vidmm_alloc_info.
 */
struct vidmm_alloc_state {
	__u32 handle;
	__u32 residency;
	__u32 segment;
	__u32 flags;
	__u32 priority;
	__u32 resident_refs;
	__u32 instances;
	__u32 current;
	__u64 size;
	__u64 object_id;
	__u64 mmap_offset;
	__u64 mmap_span;
};
#define VIDMM_ALLOC_STATE_SIZE_FIRST		64

/**
 * struct vidmm_set_priority - Argument of SET_PRIORITY.
 * @items: [in] Array of &struct vidmm_priority_item.
 * @flags: [in] Must be zero.
 * @fail_index: [out!] First element refused; none applied.
 *
 * Of two elements for one allocation the later one counts.
 */
struct vidmm_set_priority {
	struct vidmm_array items;
	__u32 flags;
	__u32 fail_index;
};
#define VIDMM_SET_PRIORITY_SIZE_FIRST		24

/**
 * struct vidmm_priority_item - One allocation of SET_PRIORITY.
 * @alloc: [in] Allocation handle.
 * @priority: [in] %VIDMM_ALLOC_PRIORITY_MINIMUM to
 *   %VIDMM_ALLOC_PRIORITY_MAXIMUM.
 */
struct vidmm_priority_item {
	__u32 alloc;
	__u32 priority;
};
#define VIDMM_PRIORITY_ITEM_SIZE_FIRST		8

/**
 * DOC: LOCK flags
 *
 * Bits of ``flags`` in &struct vidmm_lock. At least one of READ, WRITE,
 * DISCARD, NO_OVERWRITE is set; DISCARD means writing and excludes READ and
 * NO_OVERWRITE (%EINVAL).
 *
 * %VIDMM_LOCK_READ
 *   Waits for GPU writes to the current instance.
 * %VIDMM_LOCK_WRITE
 *   Waits for all GPU use of the current instance.
 * %VIDMM_LOCK_DISCARD
 *   Gives an instance that no queued work uses, contents undefined but never
 *   those of another client. Needs %VIDMM_FEATURE_RENAME.
 * %VIDMM_LOCK_NO_OVERWRITE
 *   Waits for nothing; the caller promises to touch only bytes that no queued
 *   work uses.
 * %VIDMM_LOCK_DO_NOT_WAIT
 *   Fails with %EAGAIN where the call would wait; ``deadline_ns`` must be 0.
 */
#define VIDMM_LOCK_READ				(1U << 0)
#define VIDMM_LOCK_WRITE			(1U << 1)
#define VIDMM_LOCK_DISCARD			(1U << 2)
#define VIDMM_LOCK_NO_OVERWRITE			(1U << 3)
#define VIDMM_LOCK_DO_NOT_WAIT			(1U << 4)

/**
 * DOC: LOCK results
 *
 * Bits of ``result`` in &struct vidmm_lock.
 *
 * %VIDMM_LOCK_RESULT_RENAMED
 *   The instance is another one than before.
 * %VIDMM_LOCK_RESULT_WAITED
 *   The call had to wait.
 * %VIDMM_LOCK_RESULT_FIRST_USE
 *   The instance is handed out for the first time.
 * %VIDMM_LOCK_RESULT_NOT_RENAMABLE
 *   DISCARD waited like WRITE: the allocation is not RENAMABLE, is PINNED, or
 *   has a GPU virtual address mapping.
 */
#define VIDMM_LOCK_RESULT_RENAMED		(1U << 0)
#define VIDMM_LOCK_RESULT_WAITED		(1U << 1)
#define VIDMM_LOCK_RESULT_FIRST_USE		(1U << 2)
#define VIDMM_LOCK_RESULT_NOT_RENAMABLE		(1U << 3)

/**
 * struct vidmm_lock - Argument of LOCK.
 * @alloc: [in] Allocation handle.
 * @flags: [in] LOCK flags.
 * @offset: [in] First byte that will be touched.
 * @length: [in] Bytes that will be touched, 0 means to the end.
 * @deadline_ns: [in] Absolute CLOCK_MONOTONIC; %VIDMM_WAIT_FOREVER waits for
 *   ever, 0 polls (%ETIME); must be 0 with %VIDMM_LOCK_DO_NOT_WAIT (%EAGAIN).
 * @instance: [out] Instance to touch.
 * @result: [out] LOCK results.
 * @mmap_offset: [out] Mapping offset of that instance.
 * @generation: [out] Goes up by one with each rename of this allocation.
 *
 * Locks nest and do not pin; the mapping follows the memory. A range outside
 * the allocation is %EINVAL.
 *
 * Also: %EAGAIN (DO_NOT_WAIT), %ETIME, %EBUSY (offered), %EACCES (WRITE on a
 * read-only import), %EOPNOTSUPP (not mappable).
 */
struct vidmm_lock {
	__u32 alloc;
	__u32 flags;
	__u64 offset;
	__u64 length;
	__s64 deadline_ns;
	__u32 instance;
	__u32 result;
	__u64 mmap_offset;
	__u64 generation;
};
#define VIDMM_LOCK_SIZE_FIRST			56

/**
 * struct vidmm_unlock - Argument of UNLOCK.
 * @alloc: [in] Allocation handle.
 * @instance: [in] Instance returned by LOCK.
 * @offset: [in] First byte written, 0 with @length 0 if nothing was written.
 * @length: [in] Bytes written.
 * @flags: [in] Must be zero.
 * @pad: [in] Must be zero.
 *
 * The written range tells the kernel what is newer in CPU memory; it is not a
 * synchronisation. %EINVAL if not locked.
 */
struct vidmm_unlock {
	__u32 alloc;
	__u32 instance;
	__u64 offset;
	__u64 length;
	__u32 flags;
	__u32 pad;
};
#define VIDMM_UNLOCK_SIZE_FIRST			32

/**
 * DOC: Context modes
 *
 * Values of ``mode`` in &struct vidmm_context_create; bit n of ``modes`` in
 * &struct vidmm_info_node stands for mode n. A mode that the node does not
 * offer is %EOPNOTSUPP, and so is a submission call of the other kind.
 *
 * %VIDMM_CONTEXT_MODE_PATCHED_LIST
 *   The lists of each submission decide residency; splitting may happen.
 * %VIDMM_CONTEXT_MODE_PATCHED_EXPLICIT
 *   Lists only patch; everything named must hold a residency reference, or the
 *   submission is refused and the device goes to ERROR_DMA. Nothing is cut.
 * %VIDMM_CONTEXT_MODE_VIRTUAL
 *   GPU virtual addresses, no lists; residency through MAKE_RESIDENT.
 */
#define VIDMM_CONTEXT_MODE_PATCHED_LIST		0
#define VIDMM_CONTEXT_MODE_PATCHED_EXPLICIT	1
#define VIDMM_CONTEXT_MODE_VIRTUAL		2

/**
 * DOC: Context flags
 *
 * Bits of ``flags`` in &struct vidmm_context_create.
 *
 * %VIDMM_CONTEXT_NO_TIMEOUT
 *   No time limit. Needs ``CAP_SYS_ADMIN``.
 */
#define VIDMM_CONTEXT_NO_TIMEOUT		(1U << 0)

/**
 * DOC: Context priorities
 *
 * Range of ``priority``. Above 0 needs ``CAP_SYS_NICE``.
 *
 * %VIDMM_CONTEXT_PRIORITY_MIN
 *   Lowest priority.
 * %VIDMM_CONTEXT_PRIORITY_MAX
 *   Highest priority.
 */
#define VIDMM_CONTEXT_PRIORITY_MIN		(-7)
#define VIDMM_CONTEXT_PRIORITY_MAX		7

/**
 * struct vidmm_context_create - Argument of CONTEXT_CREATE.
 * @device: [in] Device handle.
 * @node: [in] Node ordinal.
 * @mode: [in] Context mode.
 * @flags: [in] Context flags.
 * @priority: [in] %VIDMM_CONTEXT_PRIORITY_MIN to %VIDMM_CONTEXT_PRIORITY_MAX,
 *   above 0 is privileged.
 * @companion_node: [in] %VIDMM_NODE_NONE: the backend names the node of the
 *   companion context (@companion_node of &struct vidmm_info_node); others
 *   later.
 * @timeout_ms: [in] 0 is the node default; a longer one than the default is
 *   privileged.
 * @context: [out] Context handle.
 * @progress: [out] Fence handle that carries the id of the last finished
 *   submission.
 * @progress_slot: [out] Slot of that fence inside its page.
 * @progress_mmap: [out] Mapping offset of the page.
 *
 * The progress fence outlives its context: it stays until its own handle is
 * closed, its value no longer changes, and a wait for more answers %ECANCELED.
 */
struct vidmm_context_create {
	__u32 device;
	__u32 node;
	__u32 mode;
	__u32 flags;
	__s32 priority;
	__u32 companion_node;
	__u32 timeout_ms;
	__u32 context;
	__u32 progress;
	__u32 progress_slot;
	__u64 progress_mmap;
};
#define VIDMM_CONTEXT_CREATE_SIZE_FIRST		48

/**
 * DOC: CONTEXT_SET mask
 *
 * Bits of ``mask`` in &struct vidmm_context_set. A field whose bit is clear
 * does not apply and is zero.
 *
 * %VIDMM_CONTEXT_SET_PRIORITY
 *   Set ``priority``.
 * %VIDMM_CONTEXT_SET_TIMEOUT
 *   Set ``timeout_ms``.
 */
#define VIDMM_CONTEXT_SET_PRIORITY		(1U << 0)
#define VIDMM_CONTEXT_SET_TIMEOUT		(1U << 1)

/**
 * struct vidmm_context_set - Argument of CONTEXT_SET.
 * @context: [in] Context handle.
 * @mask: [in] CONTEXT_SET mask.
 * @priority: [in] As in &struct vidmm_context_create.
 * @timeout_ms: [in] As in &struct vidmm_context_create.
 */
struct vidmm_context_set {
	__u32 context;
	__u32 mask;
	__s32 priority;
	__u32 timeout_ms;
};
#define VIDMM_CONTEXT_SET_SIZE_FIRST		16

/**
 * DOC: SUBMIT_PATCHED flags
 *
 * Bits of ``flags`` in &struct vidmm_submit_patched.
 *
 * %VIDMM_SUBMIT_PATCHED_NULL_RENDER
 *   Validate, page and schedule, execute nothing.
 */
#define VIDMM_SUBMIT_PATCHED_NULL_RENDER	(1U << 0)

/**
 * DOC: Submit errors
 *
 * Values of ``error_kind``, with the errno that goes with each and what
 * ``error_index`` is. Of several defects one is reported; which one is not
 * promised.
 *
 * %VIDMM_SUBMIT_ERROR_NONE
 *   None of these; any errno; 0.
 * %VIDMM_SUBMIT_ERROR_BAD_PACKET
 *   A packet is unknown, malformed or passes the end; %EINVAL; byte offset of
 *   the packet.
 * %VIDMM_SUBMIT_ERROR_UNPATCHED_OPERAND
 *   No entry patches the operand; %EINVAL; byte offset of the operand.
 * %VIDMM_SUBMIT_ERROR_PATCH_NOT_OPERAND
 *   The entry hits no operand, or one that is already patched; %EINVAL; patch
 *   entry.
 * %VIDMM_SUBMIT_ERROR_PATCH_RANGE
 *   ``patch_offset`` is misaligned or outside the buffer; %EINVAL; patch entry.
 * %VIDMM_SUBMIT_ERROR_ALLOC_RANGE
 *   ``alloc_offset`` is misaligned, or the reach leaves the allocation;
 *   %EINVAL; patch entry.
 * %VIDMM_SUBMIT_ERROR_SPLIT_ORDER
 *   ``split_offset`` decreases or is above ``patch_offset``; %EINVAL; patch
 *   entry.
 * %VIDMM_SUBMIT_ERROR_SPLIT_BOUNDARY
 *   ``split_offset`` is not the start of a packet; %EINVAL; patch entry.
 * %VIDMM_SUBMIT_ERROR_SLOT_RANGE
 *   ``slot`` is not below ``patch_slots``; %EINVAL; patch entry.
 * %VIDMM_SUBMIT_ERROR_DUPLICATE
 *   A pair of allocation and instance appears twice; %EINVAL; allocation entry.
 * %VIDMM_SUBMIT_ERROR_ACCESS
 *   A write without the right, or no ACCESSED_PHYSICALLY; %EACCES; allocation
 *   entry.
 * %VIDMM_SUBMIT_ERROR_INSTANCE
 *   The instance does not exist; %EINVAL; allocation entry.
 * %VIDMM_SUBMIT_ERROR_OFFERED
 *   The allocation is offered; %EBUSY; allocation or primary entry.
 * %VIDMM_SUBMIT_ERROR_NOT_RESIDENT
 *   No residency reference where one is needed; %EINVAL; allocation or primary
 *   entry.
 * %VIDMM_SUBMIT_ERROR_TOO_LARGE
 *   What is bound at one split point cannot fit; %ENOSPC; patch entry.
 * %VIDMM_SUBMIT_ERROR_BAD_POINT
 *   A wait or signal point is refused; %ENOENT, %EACCES or %EINVAL as in
 *   FENCE_WAIT and FENCE_SIGNAL, except that a signal value below the current
 *   one is accepted; wait entries first, then signal entries.
 * %VIDMM_SUBMIT_ERROR_ALLOC_INDEX
 *   ``alloc_index`` is outside the list, or an entry that patches names a NULL
 *   element; %EINVAL; patch entry.
 * %VIDMM_SUBMIT_ERROR_NOT_BOUND
 *   No slot holds the allocation at the packet that uses it; %EINVAL; patch
 *   entry.
 * %VIDMM_SUBMIT_ERROR_UNUSED
 *   No entry names the element; %EINVAL; allocation entry.
 * %VIDMM_SUBMIT_ERROR_BAD_HANDLE
 *   Unknown handle (%ENOENT), other device (%EXDEV), or no primary (%EINVAL);
 *   allocation or primary entry.
 */
#define VIDMM_SUBMIT_ERROR_NONE			0
#define VIDMM_SUBMIT_ERROR_BAD_PACKET		1
#define VIDMM_SUBMIT_ERROR_UNPATCHED_OPERAND	2
#define VIDMM_SUBMIT_ERROR_PATCH_NOT_OPERAND	3
#define VIDMM_SUBMIT_ERROR_PATCH_RANGE		4
#define VIDMM_SUBMIT_ERROR_ALLOC_RANGE		5
#define VIDMM_SUBMIT_ERROR_SPLIT_ORDER		6
#define VIDMM_SUBMIT_ERROR_SPLIT_BOUNDARY	7
#define VIDMM_SUBMIT_ERROR_SLOT_RANGE		8
#define VIDMM_SUBMIT_ERROR_DUPLICATE		9
#define VIDMM_SUBMIT_ERROR_ACCESS		10
#define VIDMM_SUBMIT_ERROR_INSTANCE		11
#define VIDMM_SUBMIT_ERROR_OFFERED		12
#define VIDMM_SUBMIT_ERROR_NOT_RESIDENT		13
#define VIDMM_SUBMIT_ERROR_TOO_LARGE		14
#define VIDMM_SUBMIT_ERROR_BAD_POINT		15
#define VIDMM_SUBMIT_ERROR_ALLOC_INDEX		16
#define VIDMM_SUBMIT_ERROR_NOT_BOUND		17
#define VIDMM_SUBMIT_ERROR_UNUSED		18
#define VIDMM_SUBMIT_ERROR_BAD_HANDLE		19

/**
 * struct vidmm_submit_patched - Argument of SUBMIT_PATCHED.
 * @context: [in] Context in one of the PATCHED modes.
 * @flags: [in] SUBMIT_PATCHED flags.
 * @cmd_ptr: [in] Command bytes in user memory.
 * @cmd_size: [in] Multiple of 8, may be 0 for a pure wait and signal submission
 *   (then both lists are empty).
 * @pad: [in] Must be zero.
 * @allocs: [in/out] Array of &struct vidmm_submit_alloc.
 * @patches: [in] Array of &struct vidmm_submit_patch.
 * @waits: [in] Array of &struct vidmm_point, all must be reached before the
 *   first byte runs.
 * @signals: [in] Array of &struct vidmm_point, signalled after the last byte.
 * @submission: [out] Submission id, rises by one per context.
 * @error_kind: [out!] Submit error, %VIDMM_SUBMIT_ERROR_NONE and so on.
 * @error_index: [out!] Index of the offending list entry, or byte offset for
 *   packet errors.
 *
 * Command bytes and lists are copied; the caller may reuse its memory at once.
 * All slots are empty when a submission starts.
 */
struct vidmm_submit_patched {
	__u32 context;
	__u32 flags;
	__u64 cmd_ptr;
	__u32 cmd_size;
	__u32 pad;
	struct vidmm_array allocs;
	struct vidmm_array patches;
	struct vidmm_array waits;
	struct vidmm_array signals;
	__u64 submission;
	__u32 error_kind;
	__u32 error_index;
};
#define VIDMM_SUBMIT_PATCHED_SIZE_FIRST		104

/**
 * DOC: Allocation entry flags
 *
 * Bits of ``flags`` in &struct vidmm_submit_alloc.
 *
 * %VIDMM_SUBMIT_ALLOC_WRITE
 *   The buffer may write the allocation.
 * %VIDMM_SUBMIT_ALLOC_KEEP_INSTANCE
 *   The instance does not go back to the idle ones when this submission ends; a
 *   later submission without the flag returns it. Needs
 *   %VIDMM_FEATURE_RENAME_USERPICK.
 * %VIDMM_SUBMIT_ALLOC_LAST_USE
 *   A hint that nothing will need the allocation soon. Later,
 *   %VIDMM_FEATURE_LAST_USE.
 */
#define VIDMM_SUBMIT_ALLOC_WRITE		(1U << 0)
#define VIDMM_SUBMIT_ALLOC_KEEP_INSTANCE	(1U << 1)
#define VIDMM_SUBMIT_ALLOC_LAST_USE		(1U << 2)

/**
 * DOC: Instances
 *
 * A special value of ``instance`` in &struct vidmm_submit_alloc.
 *
 * %VIDMM_INSTANCE_CURRENT
 *   The current instance.
 */
#define VIDMM_INSTANCE_CURRENT			0xffffffffU

/**
 * struct vidmm_submit_alloc - An entry of the allocation list of
 * SUBMIT_PATCHED.
 * @alloc: [in] Allocation handle, or 0 (NULL): an entry naming this element
 *   unbinds its slot; the other inputs are then zero.
 * @flags: [in] Allocation entry flags.
 * @instance: [in] Instance number, or %VIDMM_INSTANCE_CURRENT.
 * @presumed_segment: [in/out] Segment the caller assumed; on return the one
 *   known at submit time.
 * @presumed_address: [in/out] Address the caller already wrote into the buffer;
 *   on return the one known at submit time, 0 if none.
 *
 * The presumed place is a hint: operands that already hold the right address
 * are not written again, a wrong one is overwritten. %VIDMM_SEGMENT_ID_NONE
 * presumes nothing.
 */
struct vidmm_submit_alloc {
	__u32 alloc;
	__u32 flags;
	__u32 instance;
	__u32 presumed_segment;
	__u64 presumed_address;
};
#define VIDMM_SUBMIT_ALLOC_SIZE_FIRST		24

/**
 * DOC: Patch kinds
 *
 * Values of ``kind`` in &struct vidmm_submit_patch.
 *
 * %VIDMM_SUBMIT_PATCH_KIND_NONE
 *   Binds or unbinds only.
 * %VIDMM_SUBMIT_PATCH_KIND_LOW32
 *   Writes the low half of an address. Later, %VIDMM_FEATURE_SPLIT_ADDRESS.
 * %VIDMM_SUBMIT_PATCH_KIND_HIGH32
 *   Writes the high half of an address. Later, %VIDMM_FEATURE_SPLIT_ADDRESS.
 * %VIDMM_SUBMIT_PATCH_KIND_FULL64
 *   Writes a 64-bit address.
 */
#define VIDMM_SUBMIT_PATCH_KIND_NONE		0
#define VIDMM_SUBMIT_PATCH_KIND_LOW32		1
#define VIDMM_SUBMIT_PATCH_KIND_HIGH32		2
#define VIDMM_SUBMIT_PATCH_KIND_FULL64		3

/**
 * DOC: Unbinding
 *
 * A special value of ``alloc_index`` in &struct vidmm_submit_patch.
 *
 * %VIDMM_ALLOC_INDEX_NONE
 *   Unbinds the slot, like an index to a NULL element.
 */
#define VIDMM_ALLOC_INDEX_NONE			0xffffffffU

/**
 * struct vidmm_submit_patch - An entry of the patch list of SUBMIT_PATCHED.
 * @alloc_index: [in] Index in the allocation list, or %VIDMM_ALLOC_INDEX_NONE.
 * @slot: [in] Binding slot, below ``patch_slots``.
 * @kind: [in] Patch kind; with %VIDMM_SUBMIT_PATCH_KIND_NONE @alloc_offset and
 *   @patch_offset are zero.
 * @driver_id: [in] Opaque, shown in dumps and errors.
 * @alloc_offset: [in] Byte offset inside the allocation.
 * @patch_offset: [in] Byte offset in the command buffer.
 * @split_offset: [in] Byte offset from which the allocation is needed; a legal
 *   place to stop.
 *
 * Entries are taken in order. Each binds its allocation to its slot from
 * @split_offset on; binding an occupied slot, or unbinding it, releases the
 * previous one from the same offset on. @split_offset values never decrease,
 * and none is above its @patch_offset.
 */
struct vidmm_submit_patch {
	__u32 alloc_index;
	__u32 slot;
	__u32 kind;
	__u32 driver_id;
	__u64 alloc_offset;
	__u32 patch_offset;
	__u32 split_offset;
};
#define VIDMM_SUBMIT_PATCH_SIZE_FIRST		32

/**
 * DOC: SUBMIT_VIRTUAL flags
 *
 * Bits of ``flags`` in &struct vidmm_submit_virtual.
 *
 * %VIDMM_SUBMIT_VIRTUAL_NULL_RENDER
 *   Schedule, execute nothing.
 */
#define VIDMM_SUBMIT_VIRTUAL_NULL_RENDER	(1U << 0)

/**
 * DOC: Written primaries
 *
 * Limit of ``primaries`` in &struct vidmm_submit_virtual.
 *
 * %VIDMM_SUBMIT_VIRTUAL_PRIMARIES
 *   The most primaries that one submission can name.
 */
#define VIDMM_SUBMIT_VIRTUAL_PRIMARIES		16

/**
 * struct vidmm_submit_virtual - Argument of SUBMIT_VIRTUAL.
 * @context: [in] Context in VIRTUAL mode.
 * @flags: [in] SUBMIT_VIRTUAL flags.
 * @cmd_va: [in] GPU virtual address of the commands, multiple of 8, mapped with
 *   %VIDMM_VA_EXECUTE.
 * @cmd_size: [in] Multiple of 8, may be 0.
 * @pad: [in] Must be zero.
 * @primaries: [in] ``u32`` handles of primaries that are written, at most
 *   %VIDMM_SUBMIT_VIRTUAL_PRIMARIES.
 * @waits: [in] Array of &struct vidmm_point, all must be reached before the
 *   first byte runs.
 * @signals: [in] Array of &struct vidmm_point, signalled after the last byte.
 * @submission: [out] Submission id, rises by one per context.
 * @error_kind: [out!] Submit error, %VIDMM_SUBMIT_ERROR_NONE and so on.
 * @error_index: [out!] Index of the offending list entry.
 *
 * Commands are read from GPU virtual memory when they run. What the device
 * holds residency references to is in memory then; lists of submissions do not
 * change that. The primaries order the work against changes of the display.
 *
 * A touch of an address that is not mapped or not resident is a fault: the
 * device goes to ERROR_FAULT with ``fault_va``. A malformed packet is
 * ERROR_DMA. A primary without a residency reference is %EINVAL
 * (NOT_RESIDENT), a handle that is no primary %EINVAL.
 */
struct vidmm_submit_virtual {
	__u32 context;
	__u32 flags;
	__u64 cmd_va;
	__u32 cmd_size;
	__u32 pad;
	struct vidmm_array primaries;
	struct vidmm_array waits;
	struct vidmm_array signals;
	__u64 submission;
	__u32 error_kind;
	__u32 error_index;
};
#define VIDMM_SUBMIT_VIRTUAL_SIZE_FIRST		88

/**
 * DOC: Submission states
 *
 * Values of ``state`` in &struct vidmm_submit_query.
 *
 * %VIDMM_SUBMIT_STATE_WAITING
 *   Waits for its fences.
 * %VIDMM_SUBMIT_STATE_PAGING
 *   Waits for its memory.
 * %VIDMM_SUBMIT_STATE_READY
 *   Waits for its node.
 * %VIDMM_SUBMIT_STATE_RUNNING
 *   Runs.
 * %VIDMM_SUBMIT_STATE_DONE
 *   Has finished.
 * %VIDMM_SUBMIT_STATE_CANCELLED
 *   Was thrown away; ``error`` says why.
 * %VIDMM_SUBMIT_STATE_FAULTED
 *   Stopped by an error of its own; ``error`` says which.
 */
#define VIDMM_SUBMIT_STATE_WAITING		1
#define VIDMM_SUBMIT_STATE_PAGING		2
#define VIDMM_SUBMIT_STATE_READY		3
#define VIDMM_SUBMIT_STATE_RUNNING		4
#define VIDMM_SUBMIT_STATE_DONE			5
#define VIDMM_SUBMIT_STATE_CANCELLED		6
#define VIDMM_SUBMIT_STATE_FAULTED		7

/**
 * struct vidmm_submit_query - Argument of SUBMIT_QUERY.
 * @context: [in] Context handle.
 * @flags: [in] Must be zero.
 * @submission: [in] Submission id; only a bounded number of finished ones is
 *   remembered.
 * @state: [out] Submission state, %VIDMM_SUBMIT_STATE_WAITING and so on.
 * @error: [out] 0 or a negative errno for CANCELLED and FAULTED.
 * @splits: [out] Portions it was cut into, 1 when it ran whole.
 * @patches_written: [out] Patch entries that had to be rewritten.
 * @paged_in: [out] Bytes brought in on its behalf.
 * @paged_out: [out] Bytes pushed out on its behalf.
 * @queued_ns: [out] CLOCK_MONOTONIC.
 * @start_ns: [out] CLOCK_MONOTONIC, 0 if not started.
 * @end_ns: [out] CLOCK_MONOTONIC, 0 if not finished.
 *
 * The record that explains a slow frame: how often it was split, what was paged
 * for it, how long it waited.
 *
 * Also: %ENOENT for ids that are forgotten or never existed.
 */
struct vidmm_submit_query {
	__u32 context;
	__u32 flags;
	__u64 submission;
	__u32 state;
	__s32 error;
	__u32 splits;
	__u32 patches_written;
	__u64 paged_in;
	__u64 paged_out;
	__u64 queued_ns;
	__u64 start_ns;
	__u64 end_ns;
};
#define VIDMM_SUBMIT_QUERY_SIZE_FIRST		72

/**
 * DOC: Paging queue priorities
 *
 * Range of ``priority`` in &struct vidmm_paging_queue_create.
 *
 * %VIDMM_PAGING_QUEUE_PRIORITY_MIN
 *   Lowest priority.
 * %VIDMM_PAGING_QUEUE_PRIORITY_MAX
 *   Highest priority.
 */
#define VIDMM_PAGING_QUEUE_PRIORITY_MIN		(-1)
#define VIDMM_PAGING_QUEUE_PRIORITY_MAX		1

/**
 * struct vidmm_paging_queue_create - Argument of PAGING_QUEUE_CREATE.
 * @device: [in] Device handle.
 * @priority: [in] %VIDMM_PAGING_QUEUE_PRIORITY_MIN to
 *   %VIDMM_PAGING_QUEUE_PRIORITY_MAX.
 * @flags: [in] Must be zero.
 * @queue: [out] Paging queue handle.
 * @fence: [out] Its paging fence, wait-only, closed with the queue and not
 *   alone (%EBUSY).
 * @slot: [out] Slot of the fence inside its page.
 * @mmap_offset: [out] Mapping offset of the page.
 */
struct vidmm_paging_queue_create {
	__u32 device;
	__s32 priority;
	__u32 flags;
	__u32 queue;
	__u32 fence;
	__u32 slot;
	__u64 mmap_offset;
};
#define VIDMM_PAGING_QUEUE_CREATE_SIZE_FIRST	32

/**
 * DOC: Paging status
 *
 * Values of ``status`` of calls on a paging queue. The values of the paging
 * fence rise by one per PENDING answer of any call on its queue.
 *
 * %VIDMM_STATUS_READY
 *   Usable now; ``fence_value`` is 0.
 * %VIDMM_STATUS_PENDING
 *   Wait for ``fence_value`` on the paging fence before running work that uses
 *   any of it.
 */
#define VIDMM_STATUS_READY			0
#define VIDMM_STATUS_PENDING			1

/**
 * DOC: MAKE_RESIDENT flags
 *
 * Bits of ``flags`` in &struct vidmm_make_resident.
 *
 * %VIDMM_MAKE_RESIDENT_CANT_TRIM_FURTHER
 *   The caller has given up all it can; the kernel may go over the budget of
 *   this client at the cost of others.
 * %VIDMM_MAKE_RESIDENT_MUST_SUCCEED
 *   If even that fails the device goes to ERROR_MEMORY. Needs CANT_TRIM_FURTHER
 *   (%EINVAL).
 */
#define VIDMM_MAKE_RESIDENT_CANT_TRIM_FURTHER	(1U << 0)
#define VIDMM_MAKE_RESIDENT_MUST_SUCCEED	(1U << 1)

/**
 * struct vidmm_make_resident - Argument of MAKE_RESIDENT.
 * @queue: [in] Paging queue handle.
 * @flags: [in] MAKE_RESIDENT flags.
 * @handles: [in] ``u32`` allocation handles.
 * @fence_value: [out] Paging fence value that covers the whole list.
 * @bytes_to_trim: [out!] How much the client should give up, 0 when inside its
 *   budget.
 * @status: [out] %VIDMM_STATUS_READY or %VIDMM_STATUS_PENDING.
 * @fail_index: [out!] First allocation that could not be placed.
 *
 * Adds one residency reference per list element; a handle may appear more than
 * once. Over budget but physically possible succeeds and sets @bytes_to_trim.
 * Not possible without pushing out what others need is %ENOSPC: no reference
 * has changed, @bytes_to_trim is set.
 */
struct vidmm_make_resident {
	__u32 queue;
	__u32 flags;
	struct vidmm_array handles;
	__u64 fence_value;
	__u64 bytes_to_trim;
	__u32 status;
	__u32 fail_index;
};
#define VIDMM_MAKE_RESIDENT_SIZE_FIRST		48

/**
 * DOC: EVICT flags
 *
 * Bits of ``flags`` in &struct vidmm_evict.
 *
 * %VIDMM_EVICT_ONLY_IF_NEEDED
 *   The allocation stays until somebody wants the space.
 * %VIDMM_EVICT_NOT_WRITTEN
 *   Contents in backing store are still good: the CPU has not written the
 *   allocation where it is. Work that lists it with WRITE and bytes that
 *   UNLOCK declares written are kept all the same.
 */
#define VIDMM_EVICT_ONLY_IF_NEEDED		(1U << 0)
#define VIDMM_EVICT_NOT_WRITTEN			(1U << 1)

/**
 * struct vidmm_evict - Argument of EVICT.
 * @device: [in] Device handle.
 * @flags: [in] EVICT flags.
 * @handles: [in] ``u32`` allocation handles.
 * @bytes_to_trim: [out] As in MAKE_RESIDENT, after this call.
 * @fail_index: [out!] Handle with no residency reference left.
 * @pad: [in] Must be zero.
 *
 * Drops one reference per element. At zero the allocation leaves at the first
 * chance after the work queued so far. %EINVAL for a handle without a
 * reference.
 */
struct vidmm_evict {
	__u32 device;
	__u32 flags;
	struct vidmm_array handles;
	__u64 bytes_to_trim;
	__u32 fail_index;
	__u32 pad;
};
#define VIDMM_EVICT_SIZE_FIRST			40

/**
 * DOC: Offer levels
 *
 * Values of ``level`` in &struct vidmm_offer: who loses contents first when
 * memory is short.
 *
 * %VIDMM_OFFER_LEVEL_LOW
 *   First.
 * %VIDMM_OFFER_LEVEL_NORMAL
 *   After LOW.
 * %VIDMM_OFFER_LEVEL_HIGH
 *   Last.
 * %VIDMM_OFFER_LEVEL_AUTO
 *   The kernel chooses from use.
 */
#define VIDMM_OFFER_LEVEL_LOW			1
#define VIDMM_OFFER_LEVEL_NORMAL		2
#define VIDMM_OFFER_LEVEL_HIGH			3
#define VIDMM_OFFER_LEVEL_AUTO			4

/**
 * DOC: OFFER flags
 *
 * Bits of ``flags`` in &struct vidmm_offer.
 *
 * %VIDMM_OFFER_NOW
 *   Does not wait for queued work: %EBUSY for an allocation that is in use.
 * %VIDMM_OFFER_ALLOW_DECOMMIT
 *   Backing store may be given up as well.
 */
#define VIDMM_OFFER_NOW				(1U << 0)
#define VIDMM_OFFER_ALLOW_DECOMMIT		(1U << 1)

/**
 * struct vidmm_offer - Argument of OFFER.
 * @device: [in] Device handle.
 * @level: [in] Offer level, %VIDMM_OFFER_LEVEL_LOW and so on.
 * @flags: [in] OFFER flags.
 * @fail_index: [out!] First handle refused; none offered.
 * @handles: [in] ``u32`` allocation handles.
 *
 * Takes effect, without blocking, after the work queued so far: from then on
 * the kernel may throw the contents away instead of saving them. Until RECLAIM,
 * LOCK, EXPORT, VA_MAP, MAKE_RESIDENT and submissions that name the allocation
 * fail with %EBUSY.
 *
 * Also: %EBUSY for an allocation that is offered, exported, imported, pinned or
 * on screen, and for USER_MEMORY.
 */
struct vidmm_offer {
	__u32 device;
	__u32 level;
	__u32 flags;
	__u32 fail_index;
	struct vidmm_array handles;
};
#define VIDMM_OFFER_SIZE_FIRST			32

/**
 * struct vidmm_reclaim - Argument of RECLAIM.
 * @queue: [in] Paging queue handle.
 * @flags: [in] Must be zero.
 * @items: [in/out] Array of &struct vidmm_reclaim_item.
 * @fence_value: [out] Paging fence value that covers the list.
 * @status: [out] %VIDMM_STATUS_READY or %VIDMM_STATUS_PENDING.
 * @fail_index: [out!] First element refused; nothing is reclaimed.
 *
 * LOCK works as soon as the call returns, without waiting for the fence. The
 * call itself fails only for bad arguments and handles; what became of each
 * allocation is in its ``result``. One that is not offered stays as it is, with
 * the result OK; so does the second of two elements that name the same one.
 */
struct vidmm_reclaim {
	__u32 queue;
	__u32 flags;
	struct vidmm_array items;
	__u64 fence_value;
	__u32 status;
	__u32 fail_index;
};
#define VIDMM_RECLAIM_SIZE_FIRST		40

/**
 * DOC: Reclaim results
 *
 * Values of ``result`` in &struct vidmm_reclaim_item.
 *
 * %VIDMM_RECLAIM_RESULT_OK
 *   Contents are intact.
 * %VIDMM_RECLAIM_RESULT_DISCARDED
 *   Storage is there, contents are zero.
 * %VIDMM_RECLAIM_RESULT_NOT_COMMITTED
 *   Backing store was given up under ALLOW_DECOMMIT and could not be committed
 *   again; the allocation stays offered.
 */
#define VIDMM_RECLAIM_RESULT_OK			0
#define VIDMM_RECLAIM_RESULT_DISCARDED		1
#define VIDMM_RECLAIM_RESULT_NOT_COMMITTED	2

/**
 * struct vidmm_reclaim_item - One allocation of RECLAIM.
 * @alloc: [in] Allocation handle.
 * @result: [out] Reclaim result, %VIDMM_RECLAIM_RESULT_OK and so on.
 */
struct vidmm_reclaim_item {
	__u32 alloc;
	__u32 result;
};
#define VIDMM_RECLAIM_ITEM_SIZE_FIRST		8

/**
 * struct vidmm_budget - Argument of BUDGET.
 * @group: [in] Segment group, %VIDMM_GROUP_LOCAL or %VIDMM_GROUP_NON_LOCAL.
 * @flags: [in] Must be zero.
 * @budget: [out] Bytes this client may keep resident now.
 * @usage: [out] Bytes it keeps resident now.
 * @reservation: [out] Bytes it reserved.
 * @reservable: [out] Bytes it could still reserve.
 * @bytes_to_trim: [out] Usage above budget, 0 if inside.
 * @generation: [out] Rises with every budget change.
 *
 * A budget is a promise about pressure, not a quota: going over it works until
 * memory is short, and then this client pays first.
 */
struct vidmm_budget {
	__u32 group;
	__u32 flags;
	__u64 budget;
	__u64 usage;
	__u64 reservation;
	__u64 reservable;
	__u64 bytes_to_trim;
	__u64 generation;
};
#define VIDMM_BUDGET_SIZE_FIRST			56

/**
 * struct vidmm_reserve_budget - Argument of RESERVE_BUDGET.
 * @group: [in] Segment group, %VIDMM_GROUP_LOCAL or %VIDMM_GROUP_NON_LOCAL.
 * @flags: [in] Must be zero.
 * @bytes: [in] New reservation; it replaces the old one.
 *
 * A reservation is a part of the budget that the kernel will not take away.
 *
 * Also: %ENOSPC for more than BUDGET calls ``reservable``.
 */
struct vidmm_reserve_budget {
	__u32 group;
	__u32 flags;
	__u64 bytes;
};
#define VIDMM_RESERVE_BUDGET_SIZE_FIRST		16

/**
 * DOC: Status page
 *
 * %VIDMM_STATUS_PAGE_VERSION
 *   ``version`` of the layout of &struct vidmm_status_page.
 */
#define VIDMM_STATUS_PAGE_VERSION		1

/**
 * struct vidmm_status_page - The page at %VIDMM_MMAP_OFFSET_STATUS_PAGE.
 * @version: [out] %VIDMM_STATUS_PAGE_VERSION.
 * @sequence: [out] Odd while being written.
 * @state: [out] Adapter state, %VIDMM_ADAPTER_STATE_RUNNING and so on.
 * @reset_count: [out] Adapter resets since load.
 * @budget_local: [out] As in BUDGET, of %VIDMM_GROUP_LOCAL.
 * @usage_local: [out] As in BUDGET, of %VIDMM_GROUP_LOCAL.
 * @trim_local: [out] As ``bytes_to_trim`` in BUDGET, of %VIDMM_GROUP_LOCAL.
 * @budget_nonlocal: [out] As in BUDGET, of %VIDMM_GROUP_NON_LOCAL.
 * @usage_nonlocal: [out] As in BUDGET, of %VIDMM_GROUP_NON_LOCAL.
 * @trim_nonlocal: [out] As ``bytes_to_trim`` in BUDGET, of
 *   %VIDMM_GROUP_NON_LOCAL.
 * @budget_generation: [out] Rises with every budget change.
 *
 * Not an argument: the kernel writes it, programs read it. Read @sequence with
 * acquire ordering until it is even, copy, read @sequence again, and start anew
 * if it has changed. So a program follows its budget without a call.
 */
struct vidmm_status_page {
	__u32 version;
	__u32 sequence;
	__u32 state;
	__u32 reset_count;
	__u64 budget_local;
	__u64 usage_local;
	__u64 trim_local;
	__u64 budget_nonlocal;
	__u64 usage_nonlocal;
	__u64 trim_nonlocal;
	__u64 budget_generation;
};

/**
 * DOC: Event types
 *
 * Values of ``type`` in &struct vidmm_event. In ``mask`` of &struct
 * vidmm_events bit (type - 1) stands for a type.
 *
 * %VIDMM_EVENT_BUDGET
 *   The budget of group ``object`` has changed: ``a`` is the new one, ``b`` the
 *   usage.
 * %VIDMM_EVENT_TRIM
 *   The client shall give up ``a`` bytes of group ``object``; ``b`` is the
 *   usage.
 * %VIDMM_EVENT_DEVICE_STATE
 *   Device ``object`` is in state ``code``.
 * %VIDMM_EVENT_ADAPTER_GONE
 *   The adapter was removed.
 * %VIDMM_EVENT_RESUMED
 *   The machine has woken up.
 * %VIDMM_EVENT_OVERFLOW
 *   ``code`` records are lost, because nobody read them in time. Comes whatever
 *   the mask says.
 * %VIDMM_EVENT_SCANOUT
 *   Source ``object`` has carried out the call of sequence ``a``.
 */
#define VIDMM_EVENT_BUDGET			1
#define VIDMM_EVENT_TRIM			2
#define VIDMM_EVENT_DEVICE_STATE		3
#define VIDMM_EVENT_ADAPTER_GONE		4
#define VIDMM_EVENT_RESUMED			5
#define VIDMM_EVENT_OVERFLOW			6
#define VIDMM_EVENT_SCANOUT			7

/**
 * DOC: Event signalling
 *
 * A special value of ``eventfd`` in &struct vidmm_events.
 *
 * %VIDMM_EVENTS_NO_EVENTFD
 *   No eventfd.
 */
#define VIDMM_EVENTS_NO_EVENTFD			(-1)

/**
 * struct vidmm_events - Argument of EVENTS.
 * @mask: [in] Event types wanted; 0 unsubscribes.
 * @eventfd: [in] An eventfd that is raised once per queued event, or
 *   %VIDMM_EVENTS_NO_EVENTFD.
 * @flags: [in] Must be zero.
 *
 * One subscription per client; a second call replaces it. Whatever @eventfd
 * says, poll() on the device file says readable when a record is queued, and
 * error and hang-up when the adapter is gone.
 */
struct vidmm_events {
	__u64 mask;
	__s32 eventfd;
	__u32 flags;
};
#define VIDMM_EVENTS_SIZE_FIRST			16

/**
 * struct vidmm_event - A record that read() on the device file returns.
 * @type: [out] Event type, %VIDMM_EVENT_BUDGET and so on.
 * @length: [out] Size of this record; skip what you do not know.
 * @time_ns: [out] CLOCK_MONOTONIC.
 * @object: [out] Handle, source or group that the event is about.
 * @code: [out] New state, or the number of lost records.
 * @a: [out] New budget, bytes to trim, or sequence.
 * @b: [out] Usage at that moment.
 *
 * read() returns whole records only: %EINVAL for a buffer too small for the
 * first, %EAGAIN with O_NONBLOCK and nothing queued. BUDGET and TRIM records of
 * a group are merged, so that only the newest is queued. When the queue is full
 * an OVERFLOW record takes the last place.
 */
struct vidmm_event {
	__u32 type;
	__u32 length;
	__u64 time_ns;
	__u32 object;
	__u32 code;
	__u64 a;
	__u64 b;
};

/**
 * DOC: Fence slots
 *
 * Where slots lie in a page.
 *
 * %VIDMM_FENCE_SLOT_STRIDE
 *   Distance of two slots in bytes; slot n starts at n times this in its page,
 *   and what the layout does not name is zero.
 */
#define VIDMM_FENCE_SLOT_STRIDE			64

/**
 * DOC: Poison
 *
 * The value of a poisoned fence.
 *
 * %VIDMM_FENCE_VALUE_POISONED
 *   ``value`` of a poisoned fence without KEEP_ON_RESET: every spinning reader
 *   comes free.
 */
#define VIDMM_FENCE_VALUE_POISONED		0xffffffffffffffffULL

/**
 * DOC: Reservation kinds
 *
 * Values of ``kind`` in &struct vidmm_va_reserve: what an access meets where
 * nothing is mapped.
 *
 * %VIDMM_VA_RESERVE_NO_ACCESS
 *   It faults.
 * %VIDMM_VA_RESERVE_ZERO
 *   Reads give zero, writes are dropped. Needs the zero capability of the
 *   adapter (%EOPNOTSUPP). What is in such a range changes by VA_UPDATE only.
 */
#define VIDMM_VA_RESERVE_NO_ACCESS		0
#define VIDMM_VA_RESERVE_ZERO			1

/**
 * DOC: Alignment of reservations
 *
 * %VIDMM_VA_RESERVE_ALIGN
 *   Base, limits and size of a reservation are multiples of it.
 */
#define VIDMM_VA_RESERVE_ALIGN			0x10000

/**
 * struct vidmm_va_reserve - Argument of VA_RESERVE.
 * @queue: [in] Paging queue handle.
 * @kind: [in] Reservation kind, %VIDMM_VA_RESERVE_NO_ACCESS and so on.
 * @flags: [in] Must be zero.
 * @status: [out] %VIDMM_STATUS_READY or %VIDMM_STATUS_PENDING.
 * @base: [in] Exact address, or 0.
 * @min: [in] Lowest address when @base is 0.
 * @max: [in] End of the window when @base is 0, 0 for the whole space.
 * @size: [in] Bytes.
 * @align: [in] Power of two or 0.
 * @va: [out] Address reserved.
 * @fence_value: [out] Paging fence value, 0 when READY.
 *
 * Sets addresses aside, without memory behind them. @base, @min, @max and @size
 * are multiples of %VIDMM_VA_RESERVE_ALIGN. An exact address that overlaps
 * anything is %EEXIST, no free place is %ENOSPC. With a @base, @min and @max are
 * zero and @base is a multiple of @align.
 */
struct vidmm_va_reserve {
	__u32 queue;
	__u32 kind;
	__u32 flags;
	__u32 status;
	__u64 base;
	__u64 min;
	__u64 max;
	__u64 size;
	__u64 align;
	__u64 va;
	__u64 fence_value;
};
#define VIDMM_VA_RESERVE_SIZE_FIRST		72

/**
 * struct vidmm_va_free - Argument of VA_FREE.
 * @va: [in] Page multiple: start of a whole reservation, or of any part of
 *   mappings.
 * @size: [in] Page multiple.
 * @flags: [in] Must be zero.
 * @pad: [in] Must be zero.
 *
 * Exactly the range of a reservation means the reservation: it goes with
 * everything in it, also when one mapping fills it. Any other range must lie in
 * mappings of the client (%EINVAL); what lies in a NO_ACCESS reservation falls
 * back to it, a part of a ZERO reservation is left to VA_UPDATE (%EINVAL).
 *
 * On return the addresses can be used again, and operations still queued for
 * the old range are dropped, even if the range has been used anew. Memory
 * behind it is not given to anybody else before the translations are flushed;
 * work of the client that still uses the addresses faults or meets the new
 * mapping.
 */
struct vidmm_va_free {
	__u64 va;
	__u64 size;
	__u32 flags;
	__u32 pad;
};
#define VIDMM_VA_FREE_SIZE_FIRST		24

/**
 * DOC: Mapping protection
 *
 * Bits of ``protection`` in &struct vidmm_va_map. Reads are always allowed.
 *
 * %VIDMM_VA_WRITE
 *   Engines may write.
 * %VIDMM_VA_EXECUTE
 *   Engines may fetch commands.
 */
#define VIDMM_VA_WRITE				(1U << 0)
#define VIDMM_VA_EXECUTE			(1U << 1)

/**
 * struct vidmm_va_map - Argument of VA_MAP.
 * @queue: [in] Paging queue handle.
 * @alloc: [in] Allocation handle.
 * @protection: [in] Mapping protection, %VIDMM_VA_WRITE and so on.
 * @flags: [in] Must be zero.
 * @base: [in] Exact address, or 0 for the kernel to choose.
 * @min: [in] Lowest address when @base is 0.
 * @max: [in] End of the window when @base is 0, 0 for the whole space.
 * @alloc_offset: [in] Page multiple.
 * @size: [in] Page multiple.
 * @va: [out] Address mapped.
 * @fence_value: [out] Paging fence value, 0 when READY.
 * @status: [out] %VIDMM_STATUS_READY or %VIDMM_STATUS_PENDING.
 * @pad: [in] Must be zero.
 * @driver_protection: [in] Handed to the backend with each page-table entry;
 *   bits it does not know are %EOPNOTSUPP (software engine: bits 0-3).
 *
 * Outside a reservation it makes its own range; an exact @base may also lie
 * wholly inside one NO_ACCESS reservation or one range made by an earlier call,
 * where it replaces all that it covers, one mapping or several, whole or in
 * part, in one step. Any other overlap is %EEXIST, two ranges side by side
 * included; inside a ZERO reservation it is %EINVAL; no free place is %ENOSPC.
 * With a @base, @min and @max are zero.
 *
 * Page-table writes and the TLB flush that goes with them are ordered on the
 * paging queue; @fence_value covers both. A mapped allocation that is not
 * resident has invalid entries until MAKE_RESIDENT brings it in.
 */
struct vidmm_va_map {
	__u32 queue;
	__u32 alloc;
	__u32 protection;
	__u32 flags;
	__u64 base;
	__u64 min;
	__u64 max;
	__u64 alloc_offset;
	__u64 size;
	__u64 va;
	__u64 fence_value;
	__u32 status;
	__u32 pad;
	__u64 driver_protection;
};
#define VIDMM_VA_MAP_SIZE_FIRST			88

/**
 * struct vidmm_va_query - Argument of VA_QUERY.
 * @va: [in] Start of the window.
 * @size: [in] Its length.
 * @entries: [in/out] Room for &struct vidmm_va_entry; they are written only.
 * @total: [out] Runs that exist in the window, may exceed the room.
 * @flags: [in] Must be zero.
 *
 * What is reserved and mapped in the client's own space, cut to the window, by
 * ascending address. For debuggers.
 */
struct vidmm_va_query {
	__u64 va;
	__u64 size;
	struct vidmm_array entries;
	__u32 total;
	__u32 flags;
};
#define VIDMM_VA_QUERY_SIZE_FIRST		40

/**
 * DOC: Address run flags
 *
 * Bits of ``flags`` in &struct vidmm_va_entry.
 *
 * %VIDMM_VA_ENTRY_RESERVED
 *   Lies in a reservation.
 * %VIDMM_VA_ENTRY_ZERO
 *   Reads give zero and writes are dropped.
 * %VIDMM_VA_ENTRY_VALID
 *   An allocation is mapped, and its entries lead to memory.
 * %VIDMM_VA_ENTRY_WRITE
 *   Engines may write.
 * %VIDMM_VA_ENTRY_EXECUTE
 *   Engines may fetch commands.
 * %VIDMM_VA_ENTRY_LARGE_PAGE
 *   The entries are large pages.
 */
#define VIDMM_VA_ENTRY_RESERVED			(1U << 0)
#define VIDMM_VA_ENTRY_ZERO			(1U << 1)
#define VIDMM_VA_ENTRY_VALID			(1U << 2)
#define VIDMM_VA_ENTRY_WRITE			(1U << 3)
#define VIDMM_VA_ENTRY_EXECUTE			(1U << 4)
#define VIDMM_VA_ENTRY_LARGE_PAGE		(1U << 5)

/**
 * struct vidmm_va_entry - A run of addresses, an element of VA_QUERY.
 * @va: [out] Start of a run with equal attributes.
 * @size: [out] Its length.
 * @alloc: [out] Allocation handle, 0 if none.
 * @flags: [out] Address run flags.
 * @alloc_offset: [out] Offset inside the allocation.
 * @segment: [out] Segment behind it, %VIDMM_SEGMENT_ID_NONE if not valid.
 * @level: [out] Page-table level of the leaf.
 */
struct vidmm_va_entry {
	__u64 va;
	__u64 size;
	__u32 alloc;
	__u32 flags;
	__u64 alloc_offset;
	__u32 segment;
	__u32 level;
};
#define VIDMM_VA_ENTRY_SIZE_FIRST		40

/**
 * DOC: Fence states
 *
 * Values of ``state`` in &struct vidmm_fence_slot.
 *
 * %VIDMM_FENCE_STATE_LIVE
 *   The fence works.
 * %VIDMM_FENCE_STATE_POISONED
 *   The fence will not be signalled; ``error`` says why. Waits return %EIO, or
 *   %ENODEV when the adapter is gone.
 */
#define VIDMM_FENCE_STATE_LIVE			0
#define VIDMM_FENCE_STATE_POISONED		1

/**
 * struct vidmm_fence_slot - A fence value in a mapped page.
 * @value: [out] Current fence value.
 * @state: [out] Fence state, %VIDMM_FENCE_STATE_LIVE or
 *   %VIDMM_FENCE_STATE_POISONED.
 * @error: [out] Negative errno when poisoned.
 * @changed_ns: [out] CLOCK_MONOTONIC of the last change.
 *
 * Not an argument: the kernel or the software GPU writes it, programs read it.
 * Reading @value with acquire ordering is enough to know that everything
 * ordered before the signal is visible.
 */
struct vidmm_fence_slot {
	__u64 value;
	__u32 state;
	__s32 error;
	__u64 changed_ns;
};

/**
 * DOC: FENCE_CREATE flags
 *
 * Bits of ``flags`` in &struct vidmm_fence_create.
 *
 * %VIDMM_FENCE_SHARED
 *   May be exported; has a page of its own. Needs %VIDMM_FEATURE_FENCE_SHARE.
 * %VIDMM_FENCE_NO_CPU_SIGNAL
 *   FENCE_SIGNAL is refused (%EACCES).
 * %VIDMM_FENCE_NO_GPU_ACCESS
 *   Not in the address space of the client; ``gpu_va`` is 0.
 * %VIDMM_FENCE_KEEP_ON_RESET
 *   Poisoning leaves ``value`` alone and only sets ``state`` and ``error``.
 */
#define VIDMM_FENCE_SHARED			(1U << 0)
#define VIDMM_FENCE_NO_CPU_SIGNAL		(1U << 1)
#define VIDMM_FENCE_NO_GPU_ACCESS		(1U << 2)
#define VIDMM_FENCE_KEEP_ON_RESET		(1U << 3)

/**
 * struct vidmm_fence_create - Argument of FENCE_CREATE.
 * @device: [in] Device handle.
 * @flags: [in] FENCE_CREATE flags.
 * @initial: [in] First value.
 * @fence: [out] Fence handle.
 * @slot: [out] Slot inside its page.
 * @mmap_offset: [out] Mapping offset of its page.
 * @gpu_va: [out] GPU virtual address of the value, 8-byte aligned; 0 with
 *   NO_GPU_ACCESS or without a GPU MMU.
 */
struct vidmm_fence_create {
	__u32 device;
	__u32 flags;
	__u64 initial;
	__u32 fence;
	__u32 slot;
	__u64 mmap_offset;
	__u64 gpu_va;
};
#define VIDMM_FENCE_CREATE_SIZE_FIRST		40

/**
 * DOC: FENCE_SIGNAL flags
 *
 * Bits of ``flags`` in &struct vidmm_fence_signal.
 *
 * %VIDMM_FENCE_SIGNAL_ALLOW_REWIND
 *   The value may go down, which is %EINVAL otherwise. Waits already satisfied
 *   are not re-armed.
 */
#define VIDMM_FENCE_SIGNAL_ALLOW_REWIND		(1U << 0)

/**
 * struct vidmm_fence_signal - Argument of FENCE_SIGNAL.
 * @points: [in] Array of &struct vidmm_point.
 * @flags: [in] FENCE_SIGNAL flags.
 * @fail_index: [out!] First element refused; none signalled.
 *
 * %EACCES with NO_CPU_SIGNAL, and for paging and progress fences.
 */
struct vidmm_fence_signal {
	struct vidmm_array points;
	__u32 flags;
	__u32 fail_index;
};
#define VIDMM_FENCE_SIGNAL_SIZE_FIRST		24

/**
 * DOC: FENCE_WAIT flags
 *
 * Bits of ``flags`` in &struct vidmm_fence_wait.
 *
 * %VIDMM_FENCE_WAIT_ANY
 *   One point is enough; otherwise all must be reached.
 */
#define VIDMM_FENCE_WAIT_ANY			(1U << 0)

/**
 * struct vidmm_fence_wait - Argument of FENCE_WAIT.
 * @points: [in] Array of &struct vidmm_point.
 * @deadline_ns: [in] Absolute CLOCK_MONOTONIC; %VIDMM_WAIT_FOREVER waits for
 *   ever, 0 polls.
 * @flags: [in] FENCE_WAIT flags.
 * @first: [out!] ANY: a satisfied element; on error the poisoned one.
 *
 * %ETIME at the deadline, also for polling. Waiting for a value that nobody has
 * queued is legal.
 */
struct vidmm_fence_wait {
	struct vidmm_array points;
	__s64 deadline_ns;
	__u32 flags;
	__u32 first;
};
#define VIDMM_FENCE_WAIT_SIZE_FIRST		32

/**
 * DOC: SCANOUT flags
 *
 * Bits of ``flags`` in &struct vidmm_scanout.
 *
 * %VIDMM_SCANOUT_TEST
 *   Checks only; neither waits nor signals, and ``sequence`` is that of the last
 *   accepted call.
 */
#define VIDMM_SCANOUT_TEST			(1U << 0)

/**
 * struct vidmm_scanout - Argument of SCANOUT.
 * @source: [in] Source id.
 * @alloc: [in] Primary to show, 0 blanks.
 * @flags: [in] SCANOUT flags.
 * @previous: [out] Primary it replaces, 0 if none.
 * @wait: [in] Reached before the switch; ``fence`` 0 for none.
 * @signal: [in] Signalled when @previous is no longer shown, or at the switch
 *   if there is none or it is the same; ``fence`` 0 for none.
 * @sequence: [out] Rises by one per accepted call on this source.
 *
 * Makes a primary the one to show on a source: it is brought into a segment
 * with %VIDMM_SEGMENT_SCANOUT, does not move, and is released when replaced.
 * The call returns when the primary has its place; it waits, until a signal
 * comes, for the switch before it on the same source.
 * Showing the same one again is accepted and moves nothing. Work that writes a
 * primary is ordered against the switch by the kernel. The client that first
 * shows something on a source owns it until it blanks it or is closed.
 *
 * Also: %EBUSY for a source of another client, %EINVAL for an allocation that
 * is no primary, %ENOSPC when there is no place for it, even after paging; the
 * source then goes on showing what it showed.
 */
struct vidmm_scanout {
	__u32 source;
	__u32 alloc;
	__u32 flags;
	__u32 previous;
	struct vidmm_point wait;
	struct vidmm_point signal;
	__u64 sequence;
};
#define VIDMM_SCANOUT_SIZE_FIRST		56

/**
 * DOC: Commands
 *
 * One read-write command per call that has a structure. The size bits carry the
 * size of the structure that the program was built with; direction, type and
 * number choose the handler.
 */
#define VIDMM_IOCTL_QUERY \
	_IOWR(VIDMM_IOC_TYPE, VIDMM_NR_QUERY, struct vidmm_query)
#define VIDMM_IOCTL_SET_NAME \
	_IOWR(VIDMM_IOC_TYPE, VIDMM_NR_SET_NAME, struct vidmm_set_name)
#define VIDMM_IOCTL_CLOSE \
	_IOWR(VIDMM_IOC_TYPE, VIDMM_NR_CLOSE, struct vidmm_close)
#define VIDMM_IOCTL_DEVICE_CREATE \
	_IOWR(VIDMM_IOC_TYPE, VIDMM_NR_DEVICE_CREATE, \
	      struct vidmm_device_create)
#define VIDMM_IOCTL_DEVICE_STATE \
	_IOWR(VIDMM_IOC_TYPE, VIDMM_NR_DEVICE_STATE, struct vidmm_device_state)
#define VIDMM_IOCTL_ALLOC_CREATE \
	_IOWR(VIDMM_IOC_TYPE, VIDMM_NR_ALLOC_CREATE, struct vidmm_alloc_create)
#define VIDMM_IOCTL_ALLOC_QUERY \
	_IOWR(VIDMM_IOC_TYPE, VIDMM_NR_ALLOC_QUERY, struct vidmm_alloc_query)
#define VIDMM_IOCTL_SET_PRIORITY \
	_IOWR(VIDMM_IOC_TYPE, VIDMM_NR_SET_PRIORITY, struct vidmm_set_priority)
#define VIDMM_IOCTL_LOCK \
	_IOWR(VIDMM_IOC_TYPE, VIDMM_NR_LOCK, struct vidmm_lock)
#define VIDMM_IOCTL_UNLOCK \
	_IOWR(VIDMM_IOC_TYPE, VIDMM_NR_UNLOCK, struct vidmm_unlock)
#define VIDMM_IOCTL_CONTEXT_CREATE \
	_IOWR(VIDMM_IOC_TYPE, VIDMM_NR_CONTEXT_CREATE, \
	      struct vidmm_context_create)
#define VIDMM_IOCTL_CONTEXT_SET \
	_IOWR(VIDMM_IOC_TYPE, VIDMM_NR_CONTEXT_SET, struct vidmm_context_set)
#define VIDMM_IOCTL_SUBMIT_PATCHED \
	_IOWR(VIDMM_IOC_TYPE, VIDMM_NR_SUBMIT_PATCHED, \
	      struct vidmm_submit_patched)
#define VIDMM_IOCTL_SUBMIT_VIRTUAL \
	_IOWR(VIDMM_IOC_TYPE, VIDMM_NR_SUBMIT_VIRTUAL, \
	      struct vidmm_submit_virtual)
#define VIDMM_IOCTL_SUBMIT_QUERY \
	_IOWR(VIDMM_IOC_TYPE, VIDMM_NR_SUBMIT_QUERY, struct vidmm_submit_query)
#define VIDMM_IOCTL_PAGING_QUEUE_CREATE \
	_IOWR(VIDMM_IOC_TYPE, VIDMM_NR_PAGING_QUEUE_CREATE, \
	      struct vidmm_paging_queue_create)
#define VIDMM_IOCTL_MAKE_RESIDENT \
	_IOWR(VIDMM_IOC_TYPE, VIDMM_NR_MAKE_RESIDENT, \
	      struct vidmm_make_resident)
#define VIDMM_IOCTL_EVICT \
	_IOWR(VIDMM_IOC_TYPE, VIDMM_NR_EVICT, struct vidmm_evict)
#define VIDMM_IOCTL_OFFER \
	_IOWR(VIDMM_IOC_TYPE, VIDMM_NR_OFFER, struct vidmm_offer)
#define VIDMM_IOCTL_RECLAIM \
	_IOWR(VIDMM_IOC_TYPE, VIDMM_NR_RECLAIM, struct vidmm_reclaim)
#define VIDMM_IOCTL_BUDGET \
	_IOWR(VIDMM_IOC_TYPE, VIDMM_NR_BUDGET, struct vidmm_budget)
#define VIDMM_IOCTL_RESERVE_BUDGET \
	_IOWR(VIDMM_IOC_TYPE, VIDMM_NR_RESERVE_BUDGET, \
	      struct vidmm_reserve_budget)
#define VIDMM_IOCTL_EVENTS \
	_IOWR(VIDMM_IOC_TYPE, VIDMM_NR_EVENTS, struct vidmm_events)
#define VIDMM_IOCTL_VA_RESERVE \
	_IOWR(VIDMM_IOC_TYPE, VIDMM_NR_VA_RESERVE, struct vidmm_va_reserve)
#define VIDMM_IOCTL_VA_FREE \
	_IOWR(VIDMM_IOC_TYPE, VIDMM_NR_VA_FREE, struct vidmm_va_free)
#define VIDMM_IOCTL_VA_MAP \
	_IOWR(VIDMM_IOC_TYPE, VIDMM_NR_VA_MAP, struct vidmm_va_map)
#define VIDMM_IOCTL_VA_QUERY \
	_IOWR(VIDMM_IOC_TYPE, VIDMM_NR_VA_QUERY, struct vidmm_va_query)
#define VIDMM_IOCTL_FENCE_CREATE \
	_IOWR(VIDMM_IOC_TYPE, VIDMM_NR_FENCE_CREATE, struct vidmm_fence_create)
#define VIDMM_IOCTL_FENCE_SIGNAL \
	_IOWR(VIDMM_IOC_TYPE, VIDMM_NR_FENCE_SIGNAL, struct vidmm_fence_signal)
#define VIDMM_IOCTL_FENCE_WAIT \
	_IOWR(VIDMM_IOC_TYPE, VIDMM_NR_FENCE_WAIT, struct vidmm_fence_wait)
#define VIDMM_IOCTL_SCANOUT \
	_IOWR(VIDMM_IOC_TYPE, VIDMM_NR_SCANOUT, struct vidmm_scanout)

#endif /* _UAPI_LINUX_VIDMM_H */
