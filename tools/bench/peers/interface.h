/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ioctls of the peer modules, mirrored in tools/bench/src/peers/.
 *
 * Some calls are timed by their caller, some time a loop inside the kernel and return the ticks of
 * the time stamp counter that all its turns took together.
 */
#ifndef _BENCH_INTERFACE_H
#define _BENCH_INTERFACE_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define BENCH_TYPE 0xdb

/* --- /dev/bench-floor: the least that the machine can do. --- */

/* Goes in and comes out, each word one higher. */
struct bench_words {
	__u64 words[8];
};

/* What BENCH_WORK does `count` times. */
enum {
	BENCH_KMALLOC = 0,	/* argument: bytes; allocate and free */
	BENCH_ID = 1,		/* allocate an id of an xarray, and erase it */
	BENCH_PAGES = 2,	/* argument: order; allocate zeroed, and free */
	BENCH_MEMSET = 3,	/* argument: bytes, at most BENCH_BLOCK / 2 */
	BENCH_MEMCPY = 4,	/* the same */
	BENCH_ROUND_TRIP = 5,	/* wake a thread, and be woken by it */
};

#define BENCH_BLOCK (4 << 20)

struct bench_work {
	__u32 what;
	__u32 count;
	__u64 argument;
	__u64 ticks;		/* out */
	__u64 check;		/* out: what the work has left behind */
};

/* Records and argument are as large as those of a submission. */
struct bench_patch_allocation {
	__u32 handle;
	__u32 pad[3];
	__u64 address;		/* out */
};

struct bench_patch_entry {
	__u32 allocation;
	__u32 pad[3];
	__u64 allocation_offset;
	__u32 patch_offset;
	__u32 pad2;
};

#define BENCH_PATCH_LOOKUP (1 << 0)	/* find the allocation of each entry by its handle */
#define BENCH_PATCH_CHECK (1 << 1)	/* add up the patched buffer */

/* Handles that can be found are from 1 to this. */
#define BENCH_HANDLES 8192
#define BENCH_ADDRESS(handle) ((__u64)(handle) << 20)
/* Longest list and command buffer, in bytes. */
#define BENCH_PATCH_BYTES (128 << 10)

struct bench_patch {
	__u64 commands;
	__u32 command_bytes;
	__u32 flags;
	__u64 allocations;
	__u32 allocation_count;
	__u32 pad;
	__u64 patches;
	__u32 patch_count;
	__u32 pad2;
	__u64 sum;		/* out */
	__u64 pad3[6];
};

#define BENCH_NULL	_IO(BENCH_TYPE, 0)
#define BENCH_WORDS	_IOWR(BENCH_TYPE, 1, struct bench_words)
#define BENCH_WORK	_IOWR(BENCH_TYPE, 2, struct bench_work)
#define BENCH_PATCH	_IOWR(BENCH_TYPE, 3, struct bench_patch)

/* --- /dev/bench-drm: what other drivers use. --- */

enum {
	/* Lock `objects`, reserve, add a fence, unlock. Timed by the caller. */
	BENCH_EXEC = 0,
	/* The same, and validate each where it is already. Timed by the caller. */
	BENCH_TTM_VALIDATE = 1,
	/* Create and destroy, `count` times, in system pages or in memory of the device. */
	BENCH_TTM_SYSTEM = 2,
	BENCH_TTM_MEMORY = 3,
	/* Move to the device and back, `count` times there and back. */
	BENCH_TTM_MOVE = 4,
	/* Queue `count` jobs and wait for the last. */
	BENCH_SCHED = 5,
	/*
	 * `count` turns through buffers of half as many bytes again as the memory holds: each evicts
	 * one and brings one in.
	 */
	BENCH_TTM_PRESSURE = 6,
};

#define BENCH_OBJECTS 4096
#define BENCH_TTM_OBJECTS 256
#define BENCH_MEMORY (32 << 20)

struct bench_drm {
	__u32 what;
	__u32 count;
	__u64 bytes;
	__u32 objects;
	__u32 done;		/* out: how many turns, objects or jobs there were */
	__u64 ticks;		/* out */
};

#define BENCH_DRM	_IOWR(BENCH_TYPE, 16, struct bench_drm)

#endif /* _BENCH_INTERFACE_H */
