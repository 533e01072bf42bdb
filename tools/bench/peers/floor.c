// SPDX-License-Identifier: GPL-2.0
/*
 * Floors: calls that do the least that a call can do, or the least that a piece of work needs.
 */

#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/uaccess.h>

#include "floor.h"

static long bench_words_call(void __user *user)
{
	struct bench_words words;
	int i;

	if (copy_from_user(&words, user, sizeof(words)))
		return -EFAULT;
	for (i = 0; i < ARRAY_SIZE(words.words); i++)
		words.words[i]++;
	return copy_to_user(user, &words, sizeof(words)) ? -EFAULT : 0;
}

static long bench_work_call(void __user *user)
{
	struct bench_work work;
	int ret;

	if (copy_from_user(&work, user, sizeof(work)))
		return -EFAULT;
	ret = bench_work(&work);
	if (ret)
		return ret;
	return copy_to_user(user, &work, sizeof(work)) ? -EFAULT : 0;
}

static long bench_patch_call(struct file *file, void __user *user)
{
	struct bench_patch patch;
	int ret;

	if (copy_from_user(&patch, user, sizeof(patch)))
		return -EFAULT;
	ret = bench_patch(file->private_data, &patch);
	if (ret)
		return ret;
	return copy_to_user(user, &patch, sizeof(patch)) ? -EFAULT : 0;
}

static long bench_floor_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	void __user *user = (void __user *)argument;

	switch (command) {
	case BENCH_NULL:
		return 0;
	case BENCH_WORDS:
		return bench_words_call(user);
	case BENCH_WORK:
		return bench_work_call(user);
	case BENCH_PATCH:
		return bench_patch_call(file, user);
	default:
		return -ENOTTY;
	}
}

static int bench_floor_open(struct inode *inode, struct file *file)
{
	struct bench_scratch *scratch = bench_scratch_new();

	if (!scratch)
		return -ENOMEM;
	file->private_data = scratch;
	return 0;
}

static int bench_floor_release(struct inode *inode, struct file *file)
{
	bench_scratch_free(file->private_data);
	return 0;
}

static const struct file_operations bench_floor_operations = {
	.owner = THIS_MODULE,
	.open = bench_floor_open,
	.release = bench_floor_release,
	.unlocked_ioctl = bench_floor_ioctl,
};

static struct miscdevice bench_floor_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "bench-floor",
	.fops = &bench_floor_operations,
};

static int __init bench_floor_init(void)
{
	int ret;

	ret = bench_work_init();
	if (ret)
		return ret;
	ret = bench_patch_init();
	if (ret)
		goto err_work;
	ret = misc_register(&bench_floor_device);
	if (ret)
		goto err_patch;
	return 0;

err_patch:
	bench_patch_exit();
err_work:
	bench_work_exit();
	return ret;
}

static void __exit bench_floor_exit(void)
{
	misc_deregister(&bench_floor_device);
	bench_patch_exit();
	bench_work_exit();
}

module_init(bench_floor_init);
module_exit(bench_floor_exit);

MODULE_DESCRIPTION("Floors that measurements compare with");
MODULE_LICENSE("GPL");
