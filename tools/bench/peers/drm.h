/* SPDX-License-Identifier: GPL-2.0 */
/* Parts of the module of peers. */
#ifndef _BENCH_DRM_H
#define _BENCH_DRM_H

#include "interface.h"

struct device;
struct dma_fence;
struct drm_device;

int bench_exec_init(struct drm_device *drm);
void bench_exec_exit(void);
int bench_exec(struct bench_drm *call);
struct dma_fence *bench_exec_fence(void);

int bench_ttm_init(struct drm_device *drm);
void bench_ttm_exit(void);
int bench_ttm_validate(struct bench_drm *call);
int bench_ttm_create(struct bench_drm *call);
int bench_ttm_move(struct bench_drm *call);
int bench_ttm_pressure(struct bench_drm *call);

int bench_sched_init(struct device *device);
void bench_sched_exit(void);
int bench_sched(struct bench_drm *call);

#endif /* _BENCH_DRM_H */
