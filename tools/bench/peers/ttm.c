// SPDX-License-Identifier: GPL-2.0
/*
 * TTM: buffer objects in system pages, and in the memory of a device that the CPU copies to.
 */

#include <linux/dma-fence.h>
#include <linux/dma-resv.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <asm/msr.h>
#include <drm/drm_device.h>
#include <drm/drm_exec.h>
#include <drm/drm_gem.h>
#include <drm/ttm/ttm_bo.h>
#include <drm/ttm/ttm_device.h>
#include <drm/ttm/ttm_placement.h>
#include <drm/ttm/ttm_range_manager.h>
#include <drm/ttm/ttm_tt.h>

#include "drm.h"

static struct ttm_device ttm;
static struct drm_device *parent;
static u8 *memory;
static struct ttm_buffer_object *resident[BENCH_TTM_OBJECTS];

static const struct ttm_place system_place = { .mem_type = TTM_PL_TT };
static const struct ttm_place memory_place = { .mem_type = TTM_PL_VRAM };

static struct ttm_placement in_system = { .num_placement = 1, .placement = &system_place };
static struct ttm_placement in_memory = { .num_placement = 1, .placement = &memory_place };

static struct ttm_tt *bench_tt_create(struct ttm_buffer_object *bo, u32 flags)
{
	struct ttm_tt *tt = kzalloc(sizeof(*tt), GFP_KERNEL);

	if (!tt)
		return NULL;
	if (ttm_tt_init(tt, bo, flags, ttm_cached, 0)) {
		kfree(tt);
		return NULL;
	}
	return tt;
}

static void bench_tt_destroy(struct ttm_device *device, struct ttm_tt *tt)
{
	ttm_tt_fini(tt);
	kfree(tt);
}

static void bench_evict_flags(struct ttm_buffer_object *bo, struct ttm_placement *placement)
{
	*placement = in_system;
}

static int bench_move(struct ttm_buffer_object *bo, bool evict, struct ttm_operation_ctx *context,
		      struct ttm_resource *place, struct ttm_place *hop)
{
	if (!bo->resource || (bo->resource->mem_type == TTM_PL_SYSTEM && !bo->ttm)) {
		ttm_bo_move_null(bo, place);
		return 0;
	}
	return ttm_bo_move_memcpy(bo, context, place);
}

static int bench_io_mem_reserve(struct ttm_device *device, struct ttm_resource *resource)
{
	if (resource->mem_type != TTM_PL_VRAM)
		return 0;
	resource->bus.addr = memory + ((u64)resource->start << PAGE_SHIFT);
	resource->bus.is_iomem = true;
	resource->bus.caching = ttm_cached;
	return 0;
}

static struct ttm_device_funcs bench_ttm_operations = {
	.ttm_tt_create = bench_tt_create,
	.ttm_tt_destroy = bench_tt_destroy,
	.eviction_valuable = ttm_bo_eviction_valuable,
	.evict_flags = bench_evict_flags,
	.move = bench_move,
	.io_mem_reserve = bench_io_mem_reserve,
};

static void bench_bo_destroy(struct ttm_buffer_object *bo)
{
	drm_gem_private_object_fini(&bo->base);
	kfree(bo);
}

static struct ttm_buffer_object *bo_new(u64 bytes, struct ttm_placement *placement)
{
	struct ttm_buffer_object *bo = kzalloc(sizeof(*bo), GFP_KERNEL);
	int ret;

	if (!bo)
		return ERR_PTR(-ENOMEM);
	drm_gem_private_object_init(parent, &bo->base, bytes);
	/* Destroys the object when it fails. */
	ret = ttm_bo_init_validate(&ttm, bo, ttm_bo_type_device, placement, 0, false, NULL, NULL,
				   bench_bo_destroy);
	return ret ? ERR_PTR(ret) : bo;
}

/* The objects that stay where they are hold a fence that never signals: nothing may evict them. */
static void bo_pin(struct ttm_buffer_object *bo)
{
	ttm_bo_reserve(bo, false, false, NULL);
	ttm_bo_pin(bo);
	ttm_bo_unreserve(bo);
}

static void bo_unpin(struct ttm_buffer_object *bo)
{
	ttm_bo_reserve(bo, false, false, NULL);
	ttm_bo_unpin(bo);
	ttm_bo_unreserve(bo);
}

static void resident_free(void)
{
	int i;

	for (i = 0; i < BENCH_TTM_OBJECTS; i++) {
		if (resident[i]) {
			bo_unpin(resident[i]);
			ttm_bo_fini(resident[i]);
		}
		resident[i] = NULL;
	}
}

static int resident_fill(void)
{
	int i;

	for (i = 0; i < BENCH_TTM_OBJECTS; i++) {
		struct ttm_buffer_object *bo = bo_new(PAGE_SIZE, &in_memory);

		if (IS_ERR(bo))
			return PTR_ERR(bo);
		bo_pin(bo);
		resident[i] = bo;
	}
	return 0;
}

int bench_ttm_init(struct drm_device *drm)
{
	int ret;

	parent = drm;
	memory = vzalloc(BENCH_MEMORY);
	if (!memory)
		return -ENOMEM;
	ret = ttm_device_init(&ttm, &bench_ttm_operations, drm->dev, drm->anon_inode->i_mapping,
			      drm->vma_offset_manager, 0);
	if (ret)
		goto err_memory;
	ret = ttm_range_man_init(&ttm, TTM_PL_VRAM, false, BENCH_MEMORY >> PAGE_SHIFT);
	if (ret)
		goto err_device;
	ret = ttm_range_man_init(&ttm, TTM_PL_TT, true, (1ul << 30) >> PAGE_SHIFT);
	if (ret)
		goto err_vram;
	ret = resident_fill();
	if (!ret)
		return 0;

	resident_free();
	ttm_range_man_fini(&ttm, TTM_PL_TT);
err_vram:
	ttm_range_man_fini(&ttm, TTM_PL_VRAM);
err_device:
	ttm_device_fini(&ttm);
err_memory:
	vfree(memory);
	return ret;
}

void bench_ttm_exit(void)
{
	/* Nothing that is destroyed may wait for it. */
	dma_fence_signal(bench_exec_fence());
	resident_free();
	ttm_range_man_fini(&ttm, TTM_PL_TT);
	ttm_range_man_fini(&ttm, TTM_PL_VRAM);
	ttm_device_fini(&ttm);
	vfree(memory);
}

int bench_ttm_validate(struct bench_drm *call)
{
	struct ttm_operation_ctx context = { .interruptible = true };
	struct drm_exec exec;
	int ret = 0;
	u32 i;

	if (call->objects > BENCH_TTM_OBJECTS)
		return -EINVAL;
	drm_exec_init(&exec, DRM_EXEC_INTERRUPTIBLE_WAIT, call->objects);
	drm_exec_until_all_locked(&exec) {
		for (i = 0; i < call->objects; i++) {
			ret = drm_exec_prepare_obj(&exec, &resident[i]->base, 1);
			drm_exec_retry_on_contention(&exec);
			if (ret)
				goto out;
		}
	}
	for (i = 0; i < call->objects && !ret; i++) {
		ret = ttm_bo_validate(resident[i], &in_memory, &context);
		call->done++;
	}
	for (i = 0; i < call->objects && !ret; i++)
		dma_resv_add_fence(resident[i]->base.resv, bench_exec_fence(),
				   DMA_RESV_USAGE_BOOKKEEP);
out:
	drm_exec_fini(&exec);
	return ret;
}

int bench_ttm_create(struct bench_drm *call)
{
	struct ttm_placement *placement = call->what == BENCH_TTM_SYSTEM ? &in_system : &in_memory;
	u64 start = rdtsc_ordered();

	if (!call->bytes || call->bytes % PAGE_SIZE)
		return -EINVAL;
	for (; call->done < call->count; call->done++) {
		struct ttm_buffer_object *bo = bo_new(call->bytes, placement);

		if (IS_ERR(bo))
			return PTR_ERR(bo);
		ttm_bo_fini(bo);
	}
	call->ticks = rdtsc_ordered() - start;
	return 0;
}

static int bo_move(struct ttm_buffer_object *bo, struct ttm_placement *placement)
{
	struct ttm_operation_ctx context = { };
	int ret;

	ret = ttm_bo_reserve(bo, false, false, NULL);
	if (ret)
		return ret;
	ret = ttm_bo_validate(bo, placement, &context);
	ttm_bo_unreserve(bo);
	return ret;
}

int bench_ttm_move(struct bench_drm *call)
{
	struct ttm_buffer_object *bo;
	u64 start;
	int ret = 0;

	if (!call->bytes || call->bytes % PAGE_SIZE)
		return -EINVAL;
	bo = bo_new(call->bytes, &in_system);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	start = rdtsc_ordered();
	while (call->done < call->count) {
		ret = bo_move(bo, &in_memory) ?: bo_move(bo, &in_system);
		if (ret)
			break;
		call->done++;
	}
	call->ticks = rdtsc_ordered() - start;
	ttm_bo_fini(bo);
	return ret;
}

static int cycle_turns(struct ttm_buffer_object **cycle, u32 length, u32 from, u32 count)
{
	u32 i;
	int ret;

	for (i = from; i < from + count; i++) {
		ret = bo_move(cycle[i % length], &in_memory);
		if (ret)
			return ret;
	}
	return 0;
}

int bench_ttm_pressure(struct bench_drm *call)
{
	struct ttm_buffer_object **cycle;
	u32 length, i;
	u64 start;
	int ret = 0;

	if (call->bytes < SZ_64K || call->bytes > BENCH_MEMORY || call->bytes % PAGE_SIZE)
		return -EINVAL;
	length = div_u64(BENCH_MEMORY, call->bytes) * 3 / 2;
	cycle = kcalloc(length, sizeof(*cycle), GFP_KERNEL);
	if (!cycle)
		return -ENOMEM;
	for (i = 0; i < length; i++) {
		struct ttm_buffer_object *bo = bo_new(call->bytes, &in_system);

		if (IS_ERR(bo)) {
			ret = PTR_ERR(bo);
			goto out;
		}
		cycle[i] = bo;
	}
	/* Afterwards the memory is full, and each turn finds its buffer outside. */
	ret = cycle_turns(cycle, length, 0, length);
	if (ret)
		goto out;
	start = rdtsc_ordered();
	ret = cycle_turns(cycle, length, 0, call->count);
	call->ticks = rdtsc_ordered() - start;
	if (!ret)
		call->done = call->count;
out:
	for (i = 0; i < length; i++)
		if (cycle[i])
			ttm_bo_fini(cycle[i]);
	kfree(cycle);
	return ret;
}
