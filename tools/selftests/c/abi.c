// SPDX-License-Identifier: GPL-2.0
/*
 * Uses the interface from C: opens the device file, asks what there is, lets
 * the engine store a number and reads it through a mapping.
 *
 * It shows that the header compiles by itself as C99, and that its structures
 * and commands are those of the module.
 */
#define _POSIX_C_SOURCE 200809L

#include <linux/vidmm.h>
#include <linux/vidmm_engine.h>

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define VALUE 0x1122334455667788ULL
#define SIZE 4096
#define PHYSICAL_NODE 2

static int fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	return 1;
}

static int query(int fd, __u32 what, __u32 index, void *record, __u32 size)
{
	struct vidmm_query query = {
		.query = what,
		.index = index,
		.data = (uintptr_t)record,
		.size = size,
	};

	return ioctl(fd, VIDMM_IOCTL_QUERY, &query);
}

static int show(int fd)
{
	struct vidmm_info_adapter adapter;
	struct vidmm_info_segment segment;
	struct vidmm_info_node node;
	__u32 index;

	if (query(fd, VIDMM_QUERY_ADAPTER, 0, &adapter, sizeof(adapter)))
		return fail("adapter");
	printf("uapi %u.%u features %#llx\n", adapter.uapi_major,
	       adapter.uapi_minor, (unsigned long long)adapter.features);
	for (index = 0; index <= adapter.segments; index++) {
		if (query(fd, VIDMM_QUERY_SEGMENT, index, &segment, sizeof(segment)))
			return fail("segment");
		printf("segment %u kind %u size %llu\n", segment.id, segment.kind,
		       (unsigned long long)segment.size);
	}
	for (index = 0; index < adapter.nodes; index++) {
		if (query(fd, VIDMM_QUERY_NODE, index, &node, sizeof(node)))
			return fail("node");
		printf("node %u kind %u modes %#x\n", node.ordinal, node.kind,
		       node.modes);
	}
	return 0;
}

/* Lets the engine store VALUE at the start of an allocation, and waits. */
static int store(int fd, __u32 device, __u32 allocation)
{
	struct vidmm_context_create context = {
		.device = device,
		.node = PHYSICAL_NODE,
		.mode = VIDMM_CONTEXT_MODE_PATCHED_LIST,
		.companion_node = VIDMM_NODE_NONE,
	};
	__u32 commands[VIDMM_ENGINE_STORE_DWORDS] = {
		[0] = VIDMM_ENGINE_OP_STORE |
		      VIDMM_ENGINE_STORE_DWORDS << VIDMM_ENGINE_HEADER_LENGTH_SHIFT,
		[VIDMM_ENGINE_STORE_VALUE] = (__u32)VALUE,
		[VIDMM_ENGINE_STORE_VALUE + 1] = (__u32)(VALUE >> 32),
	};
	struct vidmm_submit_alloc alloc = {
		.alloc = allocation,
		.flags = VIDMM_SUBMIT_ALLOC_WRITE,
		.instance = VIDMM_INSTANCE_CURRENT,
		.presumed_segment = VIDMM_SEGMENT_ID_NONE,
	};
	struct vidmm_submit_patch patch = {
		.kind = VIDMM_SUBMIT_PATCH_KIND_FULL64,
		.patch_offset = VIDMM_ENGINE_STORE_DST * 4,
	};
	struct vidmm_submit_patched submit = {
		.cmd_ptr = (uintptr_t)commands,
		.cmd_size = sizeof(commands),
		.allocs = { (uintptr_t)&alloc, 1, sizeof(alloc) },
		.patches = { (uintptr_t)&patch, 1, sizeof(patch) },
	};
	struct vidmm_point point;
	struct vidmm_fence_wait wait = {
		.points = { (uintptr_t)&point, 1, sizeof(point) },
		.deadline_ns = VIDMM_WAIT_FOREVER,
	};

	if (ioctl(fd, VIDMM_IOCTL_CONTEXT_CREATE, &context))
		return fail("context");
	submit.context = context.context;
	if (ioctl(fd, VIDMM_IOCTL_SUBMIT_PATCHED, &submit))
		return fail("submit");
	memset(&point, 0, sizeof(point));
	point.fence = context.progress;
	point.value = submit.submission;
	if (ioctl(fd, VIDMM_IOCTL_FENCE_WAIT, &wait))
		return fail("wait");
	return 0;
}

int main(void)
{
	struct vidmm_device_create device = { .flags = 0 };
	struct vidmm_alloc_info info = {
		.size = SIZE,
		.flags = VIDMM_ALLOC_CPU_VISIBLE | VIDMM_ALLOC_ACCESSED_PHYSICALLY,
	};
	struct vidmm_alloc_create create = {
		.infos = { (uintptr_t)&info, 1, sizeof(info) },
	};
	volatile __u64 *memory;
	int fd;

	fd = open("/dev/vidmm", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return fail("/dev/vidmm");
	if (show(fd))
		return 1;
	if (ioctl(fd, VIDMM_IOCTL_DEVICE_CREATE, &device))
		return fail("device");
	create.device = device.device;
	if (ioctl(fd, VIDMM_IOCTL_ALLOC_CREATE, &create))
		return fail("allocation");
	if (store(fd, device.device, info.handle))
		return 1;
	memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		      (off_t)info.mmap_offset);
	if (memory == MAP_FAILED)
		return fail("mmap");
	printf("stored %#llx\n", (unsigned long long)*memory);
	close(fd);
	return *memory == VALUE ? 0 : 1;
}
