/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/* The fixed-size types, for machines without the kernel's user headers. */
#ifndef _LINUX_TYPES_H
#define _LINUX_TYPES_H

typedef __signed__ int __s32;
typedef unsigned int __u32;
__extension__ typedef __signed__ long long __s64;
__extension__ typedef unsigned long long __u64;

#endif
