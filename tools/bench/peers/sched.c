// SPDX-License-Identifier: GPL-2.0
/*
 * drm_sched: jobs that do nothing, so that what remains is the scheduler.
 */

#include <linux/dma-fence.h>
#include <linux/slab.h>
#include <asm/msr.h>
#include <drm/gpu_scheduler.h>

#include "drm.h"

static struct drm_gpu_scheduler scheduler;
static struct drm_sched_entity entity;

static struct dma_fence *bench_run_job(struct drm_sched_job *job)
{
	/* No fence: it has run. */
	return NULL;
}

static void bench_free_job(struct drm_sched_job *job)
{
	drm_sched_job_cleanup(job);
	kfree(job);
}

static enum drm_gpu_sched_stat bench_timedout_job(struct drm_sched_job *job)
{
	return DRM_GPU_SCHED_STAT_RESET;
}

static const struct drm_sched_backend_ops bench_sched_operations = {
	.run_job = bench_run_job,
	.free_job = bench_free_job,
	.timedout_job = bench_timedout_job,
};

int bench_sched_init(struct device *device)
{
	const struct drm_sched_init_args args = {
		.ops = &bench_sched_operations,
		.num_rqs = DRM_SCHED_PRIORITY_COUNT,
		.credit_limit = 1024,
		.timeout = MAX_SCHEDULE_TIMEOUT,
		.name = "bench",
		.dev = device,
	};
	struct drm_gpu_scheduler *list = &scheduler;
	int ret;

	ret = drm_sched_init(&scheduler, &args);
	if (ret)
		return ret;
	ret = drm_sched_entity_init(&entity, DRM_SCHED_PRIORITY_NORMAL, &list, 1, NULL);
	if (ret)
		drm_sched_fini(&scheduler);
	return ret;
}

void bench_sched_exit(void)
{
	drm_sched_entity_destroy(&entity);
	drm_sched_fini(&scheduler);
}

/* Returns the fence of the job. */
static struct dma_fence *queue_job(void)
{
	struct drm_sched_job *job = kzalloc(sizeof(*job), GFP_KERNEL);
	struct dma_fence *fence;
	int ret;

	if (!job)
		return ERR_PTR(-ENOMEM);
	ret = drm_sched_job_init(job, &entity, 1, NULL, 0);
	if (ret) {
		kfree(job);
		return ERR_PTR(ret);
	}
	drm_sched_job_arm(job);
	fence = dma_fence_get(&job->s_fence->finished);
	drm_sched_entity_push_job(job);
	return fence;
}

int bench_sched(struct bench_drm *call)
{
	struct dma_fence *last = NULL;
	u64 start = rdtsc_ordered();
	long left = 0;

	for (; call->done < call->count; call->done++) {
		struct dma_fence *fence = queue_job();

		if (IS_ERR(fence)) {
			dma_fence_put(last);
			return PTR_ERR(fence);
		}
		dma_fence_put(last);
		last = fence;
	}
	if (last)
		left = dma_fence_wait(last, false);
	call->ticks = rdtsc_ordered() - start;
	dma_fence_put(last);
	return left < 0 ? left : 0;
}
