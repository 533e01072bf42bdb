// SPDX-License-Identifier: GPL-2.0
/*
 * drm_exec: what a submission of another driver does with the objects it names before anything
 * else: lock all, reserve room for a fence, add it, unlock.
 */

#include <linux/dma-fence.h>
#include <linux/dma-resv.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <drm/drm_exec.h>
#include <drm/drm_gem.h>

#include "drm.h"

static struct drm_gem_object *objects;
/* Never signalled while it is in use; each call adds it in the place of itself. */
static struct dma_fence *fence;

static const char *fence_name(struct dma_fence *fence)
{
	return "bench";
}

static const struct dma_fence_ops fence_operations = {
	.get_driver_name = fence_name,
	.get_timeline_name = fence_name,
};

int bench_exec_init(struct drm_device *drm)
{
	int i;

	fence = kzalloc(sizeof(*fence), GFP_KERNEL);
	objects = kvcalloc(BENCH_OBJECTS, sizeof(*objects), GFP_KERNEL);
	if (!fence || !objects) {
		kfree(fence);
		kvfree(objects);
		return -ENOMEM;
	}
	dma_fence_init64(fence, &fence_operations, NULL, dma_fence_context_alloc(1), 1);
	for (i = 0; i < BENCH_OBJECTS; i++)
		drm_gem_private_object_init(drm, &objects[i], PAGE_SIZE);
	return 0;
}

void bench_exec_exit(void)
{
	int i;

	dma_fence_signal(fence);
	for (i = 0; i < BENCH_OBJECTS; i++)
		drm_gem_private_object_fini(&objects[i]);
	dma_fence_put(fence);
	kvfree(objects);
}

struct dma_fence *bench_exec_fence(void)
{
	return fence;
}

int bench_exec(struct bench_drm *call)
{
	struct drm_gem_object *object;
	struct drm_exec exec;
	int ret = 0;
	u32 i;

	if (call->objects > BENCH_OBJECTS)
		return -EINVAL;
	drm_exec_init(&exec, DRM_EXEC_INTERRUPTIBLE_WAIT, call->objects);
	drm_exec_until_all_locked(&exec) {
		for (i = 0; i < call->objects; i++) {
			ret = drm_exec_prepare_obj(&exec, &objects[i], 1);
			drm_exec_retry_on_contention(&exec);
			if (ret)
				goto out;
		}
	}
	drm_exec_for_each_locked_object(&exec, object) {
		dma_resv_add_fence(object->resv, fence, DMA_RESV_USAGE_BOOKKEEP);
		call->done++;
	}
out:
	drm_exec_fini(&exec);
	return ret;
}
