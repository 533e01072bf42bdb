// SPDX-License-Identifier: GPL-2.0
/*
 * The module parameters. The Rust module macro has no strings, and no numbers that know whether they
 * were given; so all of them are here. What a value means is decided where it is used.
 *
 * They can be read in /sys/module/vidmm/parameters and not be changed there; a number that was not
 * given reads as "default".
 */

#include <linux/kstrtox.h>
#include <linux/moduleparam.h>
#include <linux/sysfs.h>

#include "params.h"

struct vidmm_parameters vidmm_parameters;

static int set_u32(const char *text, const struct kernel_param *param)
{
	struct vidmm_number *number = param->arg;
	u32 value;
	int ret = kstrtou32(text, 0, &value);

	if (!ret)
		*number = (struct vidmm_number){ .value = value, .given = true };
	return ret;
}

static int set_u64(const char *text, const struct kernel_param *param)
{
	struct vidmm_number *number = param->arg;
	u64 value;
	int ret = kstrtou64(text, 0, &value);

	if (!ret)
		*number = (struct vidmm_number){ .value = value, .given = true };
	return ret;
}

static int set_bool(const char *text, const struct kernel_param *param)
{
	struct vidmm_number *number = param->arg;
	bool value = true;
	int ret = text ? kstrtobool(text, &value) : 0;

	if (!ret)
		*number = (struct vidmm_number){ .value = value, .given = true };
	return ret;
}

static int get_number(char *text, const struct kernel_param *param)
{
	const struct vidmm_number *number = param->arg;

	if (!number->given)
		return sysfs_emit(text, "default\n");
	return sysfs_emit(text, "%llu\n", number->value);
}

static int get_bool(char *text, const struct kernel_param *param)
{
	const struct vidmm_number *number = param->arg;

	if (!number->given)
		return sysfs_emit(text, "default\n");
	return sysfs_emit(text, "%c\n", number->value ? 'Y' : 'N');
}

static const struct kernel_param_ops u32_ops = {
	.set = set_u32,
	.get = get_number,
};

static const struct kernel_param_ops u64_ops = {
	.set = set_u64,
	.get = get_number,
};

static const struct kernel_param_ops bool_ops = {
	.flags = KERNEL_PARAM_OPS_FL_NOARG,
	.set = set_bool,
	.get = get_bool,
};

#define VIDMM_STRING(name, text)						\
	module_param_named(name, vidmm_parameters.name, charp, 0444);		\
	MODULE_PARM_DESC(name, text)

#define VIDMM_NUMBER(kind, name, text)						\
	module_param_cb(name, &kind##_ops, &vidmm_parameters.name, 0444);	\
	__MODULE_PARM_TYPE(name, #kind);					\
	MODULE_PARM_DESC(name, text)

VIDMM_STRING(backend, "soft, virtio-gpu, or auto: both where present (default auto)");
VIDMM_STRING(profile, "shape of the software engine: DISC, DISC-NSR, DISC-4L, INT, PHYS or DISC-96 (default DISC)");
VIDMM_STRING(segments, "comma-separated segments, kind:size[:option]... with kind memory or aperture (default by profile)");
VIDMM_STRING(nodes, "comma-separated nodes, kind[:virtual|physical] with kind render, copy, paging or companion (default by profile)");

VIDMM_NUMBER(u32, levels, "levels of page tables, 0 for no GPU MMU (default by profile)");
VIDMM_NUMBER(u32, update_mode, "how page tables are written: 0 GPU virtual, 1 GPU physical, 2 CPU (default by profile)");
VIDMM_NUMBER(u32, client_tables, "segment of the clients' page tables, 0 for system memory (default by profile)");
VIDMM_NUMBER(u32, paging_tables, "segment of the paging process's page tables, 0 for system memory (default by profile)");
VIDMM_NUMBER(bool, save_restore, "nodes save and restore contexts (default by profile)");
VIDMM_NUMBER(bool, preemption, "nodes can be preempted (default by profile)");
VIDMM_NUMBER(bool, zero_pages, "page tables have zero entries (default Y)");
VIDMM_NUMBER(bool, tlb_holds_invalid, "translation caches may hold invalid translations (default Y)");
VIDMM_NUMBER(u32, slots, "binding slots of a patched buffer (default 8)");
VIDMM_NUMBER(u32, companion, "node of companion contexts (default by profile)");
VIDMM_NUMBER(u32, sources, "software display sources (default 2)");
VIDMM_NUMBER(u64, scratch, "bytes of the paging process's scratch area (default by profile)");
VIDMM_NUMBER(u64, paging_buffer, "bytes of one paging buffer (default 65536)");
VIDMM_NUMBER(u64, reserve_va, "bytes that the backend keeps in the paging process's address space (default 0)");
VIDMM_NUMBER(u32, timeout_ms, "time limit of one portion in milliseconds (default 2000)");
VIDMM_NUMBER(u32, tlb_entries, "translations that one node remembers (default 1024)");
VIDMM_NUMBER(u64, seed, "seed of the random delays (default 0)");
VIDMM_NUMBER(u32, delay_us, "upper bound of the random delay before each packet in microseconds (default 0: none)");
VIDMM_NUMBER(bool, self_check, "the engine checks every physical access against what its buffer holds (default N)");
