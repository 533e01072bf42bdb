/* SPDX-License-Identifier: GPL-2.0 */
/* Parts of the module of floors. */
#ifndef _BENCH_FLOOR_H
#define _BENCH_FLOOR_H

#include "interface.h"

struct bench_scratch;

int bench_work_init(void);
void bench_work_exit(void);
int bench_work(struct bench_work *work);

int bench_patch_init(void);
void bench_patch_exit(void);
struct bench_scratch *bench_scratch_new(void);
void bench_scratch_free(struct bench_scratch *scratch);
int bench_patch(struct bench_scratch *scratch, struct bench_patch *patch);

#endif /* _BENCH_FLOOR_H */
