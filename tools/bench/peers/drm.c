// SPDX-License-Identifier: GPL-2.0
/*
 * Peers: the parts that other drivers manage memory and work with.
 *
 * They hang on a DRM device without hardware, which also offers sync objects to user space.
 */

#include <linux/device/faux.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/uaccess.h>
#include <drm/drm_drv.h>
#include <drm/drm_file.h>
#include <drm/drm_gem.h>
#include <drm/drm_ioctl.h>

#include "drm.h"

DEFINE_DRM_GEM_FOPS(bench_drm_node_operations);

static const struct drm_driver bench_drm_driver = {
	.driver_features = DRIVER_GEM | DRIVER_RENDER | DRIVER_SYNCOBJ,
	.fops = &bench_drm_node_operations,
	.name = "bench",
	.desc = "peers of a measurement",
	.major = 1,
};

static struct faux_device *faux;
static struct drm_device *drm;

static int bench_drm_call(struct bench_drm *call)
{
	switch (call->what) {
	case BENCH_EXEC:
		return bench_exec(call);
	case BENCH_TTM_VALIDATE:
		return bench_ttm_validate(call);
	case BENCH_TTM_SYSTEM:
	case BENCH_TTM_MEMORY:
		return bench_ttm_create(call);
	case BENCH_TTM_MOVE:
		return bench_ttm_move(call);
	case BENCH_TTM_PRESSURE:
		return bench_ttm_pressure(call);
	case BENCH_SCHED:
		return bench_sched(call);
	default:
		return -EINVAL;
	}
}

static long bench_drm_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	void __user *user = (void __user *)argument;
	struct bench_drm call;
	int ret;

	if (command != BENCH_DRM)
		return -ENOTTY;
	if (copy_from_user(&call, user, sizeof(call)))
		return -EFAULT;
	call.done = 0;
	call.ticks = 0;
	ret = bench_drm_call(&call);
	if (ret)
		return ret;
	return copy_to_user(user, &call, sizeof(call)) ? -EFAULT : 0;
}

static const struct file_operations bench_drm_operations = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = bench_drm_ioctl,
};

static struct miscdevice bench_drm_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "bench-drm",
	.fops = &bench_drm_operations,
};

static int __init bench_drm_init(void)
{
	int ret;

	faux = faux_device_create("bench", NULL, NULL);
	if (!faux)
		return -ENODEV;
	drm = drm_dev_alloc(&bench_drm_driver, &faux->dev);
	if (IS_ERR(drm)) {
		ret = PTR_ERR(drm);
		goto err_faux;
	}
	ret = bench_exec_init(drm);
	if (ret)
		goto err_drm;
	ret = bench_ttm_init(drm);
	if (ret)
		goto err_exec;
	ret = bench_sched_init(&faux->dev);
	if (ret)
		goto err_ttm;
	ret = drm_dev_register(drm, 0);
	if (ret)
		goto err_sched;
	ret = misc_register(&bench_drm_device);
	if (ret)
		goto err_node;
	return 0;

err_node:
	drm_dev_unregister(drm);
err_sched:
	bench_sched_exit();
err_ttm:
	bench_ttm_exit();
err_exec:
	bench_exec_exit();
err_drm:
	drm_dev_put(drm);
err_faux:
	faux_device_destroy(faux);
	return ret;
}

static void __exit bench_drm_exit(void)
{
	misc_deregister(&bench_drm_device);
	drm_dev_unregister(drm);
	bench_sched_exit();
	bench_ttm_exit();
	bench_exec_exit();
	drm_dev_put(drm);
	faux_device_destroy(faux);
}

module_init(bench_drm_init);
module_exit(bench_drm_exit);

MODULE_DESCRIPTION("Peers that measurements compare with");
MODULE_LICENSE("GPL");
