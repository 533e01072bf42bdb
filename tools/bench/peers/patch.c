// SPDX-License-Identifier: GPL-2.0
/*
 * The floor of a submission: copy the lists and the commands, write an address into the commands
 * for each entry of the patch list, copy the allocation list back.
 *
 * Nothing is allocated, checked or queued beyond what keeps the module itself safe.
 */

#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/xarray.h>

#include "floor.h"

struct bench_scratch {
	u8 *commands;
	struct bench_patch_allocation *allocations;
	struct bench_patch_entry *patches;
};

struct object {
	u64 address;
};

static struct object *objects;
static DEFINE_XARRAY(handles);

int bench_patch_init(void)
{
	int i, ret;

	objects = kvcalloc(BENCH_HANDLES + 1, sizeof(*objects), GFP_KERNEL);
	if (!objects)
		return -ENOMEM;
	for (i = 1; i <= BENCH_HANDLES; i++) {
		objects[i].address = BENCH_ADDRESS(i);
		ret = xa_err(xa_store(&handles, i, &objects[i], GFP_KERNEL));
		if (ret) {
			bench_patch_exit();
			return ret;
		}
	}
	return 0;
}

void bench_patch_exit(void)
{
	xa_destroy(&handles);
	kvfree(objects);
}

struct bench_scratch *bench_scratch_new(void)
{
	struct bench_scratch *scratch = kzalloc(sizeof(*scratch), GFP_KERNEL);

	if (!scratch)
		return NULL;
	scratch->commands = kvzalloc(BENCH_PATCH_BYTES, GFP_KERNEL);
	scratch->allocations = kvzalloc(BENCH_PATCH_BYTES, GFP_KERNEL);
	scratch->patches = kvzalloc(BENCH_PATCH_BYTES, GFP_KERNEL);
	if (scratch->commands && scratch->allocations && scratch->patches)
		return scratch;
	bench_scratch_free(scratch);
	return NULL;
}

void bench_scratch_free(struct bench_scratch *scratch)
{
	kvfree(scratch->commands);
	kvfree(scratch->allocations);
	kvfree(scratch->patches);
	kfree(scratch);
}

/* The address of an element of the allocation list that its elements know. */
static __always_inline bool find_known(const struct bench_patch_allocation *allocation,
				       u64 *address)
{
	*address = allocation->address;
	return true;
}

/* The same by its handle. */
static __always_inline bool find_by_handle(const struct bench_patch_allocation *allocation,
					   u64 *address)
{
	const struct object *object = xa_load(&handles, allocation->handle);

	if (!object)
		return false;
	*address = object->address;
	return true;
}

typedef bool (*find_t)(const struct bench_patch_allocation *allocation, u64 *address);

static __always_inline int apply(struct bench_scratch *scratch, const struct bench_patch *patch,
				 find_t find)
{
	const struct bench_patch_entry *entry = scratch->patches;
	const struct bench_patch_entry *end = entry + patch->patch_count;
	u32 last = patch->command_bytes - sizeof(u64);
	u8 *commands = scratch->commands;
	u64 address;

	for (; entry < end; entry++) {
		if (entry->allocation >= patch->allocation_count || entry->patch_offset > last ||
		    !find(&scratch->allocations[entry->allocation], &address))
			return -EINVAL;
		*(u64 *)(commands + entry->patch_offset) = address + entry->allocation_offset;
	}
	return 0;
}

/*
 * Copies without looking up what the kernel's side of it is: the lengths have been checked, and a
 * floor does nothing twice.
 */
static bool copy_in(void *to, u64 from, size_t bytes)
{
	const void __user *user = u64_to_user_ptr(from);

	return access_ok(user, bytes) && !raw_copy_from_user(to, user, bytes);
}

static bool copy_out(u64 to, const void *from, size_t bytes)
{
	void __user *user = u64_to_user_ptr(to);

	return access_ok(user, bytes) && !raw_copy_to_user(user, from, bytes);
}

static u64 sum(const struct bench_scratch *scratch, u32 bytes)
{
	u64 total = 0;
	u32 i;

	for (i = 0; i < bytes / sizeof(u64); i++)
		total += ((u64 *)scratch->commands)[i];
	return total;
}

int bench_patch(struct bench_scratch *scratch, struct bench_patch *patch)
{
	size_t allocations, patches;
	u32 i;
	int ret;

	if (patch->command_bytes < sizeof(u64) || patch->command_bytes > BENCH_PATCH_BYTES)
		return -EINVAL;
	allocations = array_size(patch->allocation_count, sizeof(*scratch->allocations));
	patches = array_size(patch->patch_count, sizeof(*scratch->patches));
	if (allocations > BENCH_PATCH_BYTES || patches > BENCH_PATCH_BYTES)
		return -EINVAL;
	if (!copy_in(scratch->commands, patch->commands, patch->command_bytes) ||
	    !copy_in(scratch->allocations, patch->allocations, allocations) ||
	    !copy_in(scratch->patches, patch->patches, patches))
		return -EFAULT;
	for (i = 0; i < patch->allocation_count; i++)
		scratch->allocations[i].address = BENCH_ADDRESS(scratch->allocations[i].handle);
	if (patch->flags & BENCH_PATCH_LOOKUP)
		ret = apply(scratch, patch, find_by_handle);
	else
		ret = apply(scratch, patch, find_known);
	if (ret)
		return ret;
	if (patch->flags & BENCH_PATCH_CHECK)
		patch->sum = sum(scratch, patch->command_bytes);
	if (!copy_out(patch->allocations, scratch->allocations, allocations))
		return -EFAULT;
	return 0;
}
