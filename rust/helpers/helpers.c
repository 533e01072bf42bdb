// SPDX-License-Identifier: GPL-2.0
/*
 * Wrappers of kernel macros and inline functions, which Rust cannot call. No logic: each one is the
 * call it is named after.
 */

#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/shmem_fs.h>
#include <linux/swap.h>

u64 vidmm_page_to_pfn(const struct page *page);
u64 vidmm_page_to_pfn(const struct page *page)
{
	return page_to_pfn(page);
}

struct page *vidmm_pfn_to_page(u64 pfn);
struct page *vidmm_pfn_to_page(u64 pfn)
{
	return pfn_to_page(pfn);
}

void *vidmm_pfn_to_virtual(u64 pfn);
void *vidmm_pfn_to_virtual(u64 pfn)
{
	return pfn_to_kaddr(pfn);
}

bool vidmm_pfn_valid(u64 pfn);
bool vidmm_pfn_valid(u64 pfn)
{
	return pfn_valid(pfn);
}

void vidmm_cond_resched(void);
void vidmm_cond_resched(void)
{
	cond_resched();
}

bool vidmm_need_resched(void);
bool vidmm_need_resched(void)
{
	return need_resched();
}

bool vidmm_signal_pending(void);
bool vidmm_signal_pending(void)
{
	return signal_pending(current);
}

bool vidmm_fatal_signal_pending(void);
bool vidmm_fatal_signal_pending(void)
{
	return fatal_signal_pending(current);
}

bool vidmm_fault_may_retry(const struct vm_fault *fault);
bool vidmm_fault_may_retry(const struct vm_fault *fault)
{
	return (fault->flags & FAULT_FLAG_ALLOW_RETRY) && !(fault->flags & FAULT_FLAG_RETRY_NOWAIT);
}

void vidmm_release_fault_lock(struct vm_fault *fault);
void vidmm_release_fault_lock(struct vm_fault *fault)
{
	release_fault_lock(fault);
}

struct mem_cgroup *vidmm_caller_mem_cgroup(void);
struct mem_cgroup *vidmm_caller_mem_cgroup(void)
{
	return get_mem_cgroup_from_mm(current->mm);
}

struct mem_cgroup *vidmm_set_active_memcg(struct mem_cgroup *group);
struct mem_cgroup *vidmm_set_active_memcg(struct mem_cgroup *group)
{
	return set_active_memcg(group);
}

void vidmm_mem_cgroup_put(struct mem_cgroup *group);
void vidmm_mem_cgroup_put(struct mem_cgroup *group)
{
	mem_cgroup_put(group);
}

struct file *vidmm_swap_file(const char *name, s64 bytes);
struct file *vidmm_swap_file(const char *name, s64 bytes)
{
	return shmem_file_setup(name, bytes, mk_vma_flags(VMA_NORESERVE_BIT));
}

void vidmm_mapping_set_unevictable(struct address_space *mapping);
void vidmm_mapping_set_unevictable(struct address_space *mapping)
{
	mapping_set_unevictable(mapping);
}

void vidmm_mapping_clear_unevictable(struct address_space *mapping);
void vidmm_mapping_clear_unevictable(struct address_space *mapping)
{
	mapping_clear_unevictable(mapping);
}

bool vidmm_has_swap(void);
bool vidmm_has_swap(void)
{
	return get_nr_swap_pages() > 0;
}

struct folio *vidmm_pfn_to_folio(u64 pfn);
struct folio *vidmm_pfn_to_folio(u64 pfn)
{
	return pfn_folio(pfn);
}
