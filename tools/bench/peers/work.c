// SPDX-License-Identifier: GPL-2.0
/*
 * Pieces of work inside the kernel, done many times and timed as a whole.
 */

#include <linux/completion.h>
#include <linux/gfp.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/xarray.h>
#include <asm/msr.h>

#include "floor.h"

/* Two blocks; the second is used from its second page on, an odd number of pages away. */
#define BLOCK_ORDER get_order(BENCH_BLOCK)

static struct page *blocks[2];
static DEFINE_XARRAY_ALLOC1(ids);

/* A thread that answers. */
static struct task_struct *partner;
static DECLARE_COMPLETION(asked);
static DECLARE_COMPLETION(answered);

/* Not a constant, so that the compiler cannot drop what is written. */
static u8 pattern = 0x5a;

static u8 *block(int index)
{
	return page_address(blocks[index]) + index * PAGE_SIZE;
}

static int answer(void *unused)
{
	while (!kthread_should_stop()) {
		wait_for_completion_state(&asked, TASK_IDLE);
		complete(&answered);
	}
	return 0;
}

int bench_work_init(void)
{
	u32 id;
	int i, ret;

	for (i = 0; i < ARRAY_SIZE(blocks); i++) {
		blocks[i] = alloc_pages(GFP_KERNEL | __GFP_ZERO, BLOCK_ORDER);
		if (!blocks[i]) {
			ret = -ENOMEM;
			goto err;
		}
	}
	for (i = 0; i < BENCH_HANDLES; i++) {
		ret = xa_alloc(&ids, &id, xa_mk_value(i), xa_limit_31b, GFP_KERNEL);
		if (ret)
			goto err;
	}
	partner = kthread_run(answer, NULL, "bench");
	if (IS_ERR(partner)) {
		ret = PTR_ERR(partner);
		partner = NULL;
		goto err;
	}
	return 0;
err:
	bench_work_exit();
	return ret;
}

void bench_work_exit(void)
{
	int i;

	if (partner) {
		/* It looks whether it shall stop after it has been asked. */
		get_task_struct(partner);
		complete_all(&asked);
		kthread_stop_put(partner);
	}
	xa_destroy(&ids);
	for (i = 0; i < ARRAY_SIZE(blocks); i++) {
		if (blocks[i])
			__free_pages(blocks[i], BLOCK_ORDER);
	}
}

static int once_kmalloc(struct bench_work *work)
{
	void *memory = kmalloc(work->argument, GFP_KERNEL);

	if (!memory)
		return -ENOMEM;
	kfree(memory);
	return 0;
}

static int once_id(struct bench_work *work)
{
	u32 id;
	int ret;

	ret = xa_alloc(&ids, &id, &ids, xa_limit_31b, GFP_KERNEL);
	if (ret)
		return ret;
	work->check = id;
	xa_erase(&ids, id);
	return 0;
}

static int once_pages(struct bench_work *work)
{
	struct page *pages = alloc_pages(GFP_KERNEL | __GFP_ZERO, work->argument);

	if (!pages)
		return -ENOMEM;
	work->check = *(u64 *)page_address(pages);
	__free_pages(pages, work->argument);
	return 0;
}

static int once_memset(struct bench_work *work)
{
	memset(block(1), pattern, work->argument);
	return 0;
}

static int once_memcpy(struct bench_work *work)
{
	memcpy(block(1), block(0), work->argument);
	return 0;
}

static int once_round_trip(struct bench_work *work)
{
	complete(&asked);
	wait_for_completion(&answered);
	work->check++;
	return 0;
}

typedef int (*once_t)(struct bench_work *work);

/* What does it, and the largest argument. */
static const struct {
	once_t once;
	u64 most;
} kinds[] = {
	[BENCH_KMALLOC] = { once_kmalloc, KMALLOC_MAX_CACHE_SIZE },
	[BENCH_ID] = { once_id, 0 },
	[BENCH_PAGES] = { once_pages, MAX_PAGE_ORDER },
	[BENCH_MEMSET] = { once_memset, BENCH_BLOCK / 2 },
	[BENCH_MEMCPY] = { once_memcpy, BENCH_BLOCK / 2 },
	[BENCH_ROUND_TRIP] = { once_round_trip, 0 },
};

int bench_work(struct bench_work *work)
{
	u64 start;
	u32 i;
	int ret;

	if (work->what >= ARRAY_SIZE(kinds) || work->argument > kinds[work->what].most)
		return -EINVAL;
	work->check = 0;
	if (work->what == BENCH_MEMCPY)
		memset(block(0), ++pattern, work->argument);
	start = rdtsc_ordered();
	for (i = 0; i < work->count; i++) {
		ret = kinds[work->what].once(work);
		if (ret)
			return ret;
	}
	work->ticks = rdtsc_ordered() - start;
	if (work->what == BENCH_MEMSET || work->what == BENCH_MEMCPY)
		work->check = block(1)[0] == pattern && block(1)[work->argument - 1] == pattern;
	return 0;
}
