/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/* The read-write command, for machines without the kernel's user headers. */
#ifndef _LINUX_IOCTL_H
#define _LINUX_IOCTL_H

#define _IOWR(type, nr, size) \
	((3U << 30) | ((unsigned int)sizeof(size) << 16) | ((type) << 8) | (nr))

#endif
