/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * latscope's responder under Zephyr. Never built or run by its authors: see README.md.
 */
#include "latscope_responder.h"
#include "resource_table.h"

#include <zephyr/cache.h>
#include <zephyr/device.h>
#include <zephyr/drivers/ipm.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/barrier.h>
#include <zephyr/sys/printk.h>

#define WINDOW DT_CHOSEN(zephyr_ipc_shm)

/* A host that comes or goes does not kick: how often that is looked at. */
#define WATCH K_MSEC(10)

static const struct device *const mailbox = DEVICE_DT_GET(DT_CHOSEN(zephyr_ipc));

/* Binary: kicks are hints, and several are as good as one. It remembers one that comes before the wait. */
K_SEM_DEFINE(kicks, 0, 1);

static struct latscope_responder responder;

static void mailbox_rang(const struct device *device, void *context, uint32_t id, volatile void *data)
{
	k_sem_give(&kicks);
}

static void kick(void *context, unsigned ring, uint32_t notify)
{
	/* A mailbox that is full has a kick in it already. */
	(void)ipm_send(mailbox, 0, notify, NULL, 0);
}

static bool kicked(void *context)
{
	k_sem_take(&kicks, WATCH);
	return true;
}

static void barrier(void *context, enum latscope_barrier what, volatile void *at, size_t length)
{
	switch (what) {
	case LATSCOPE_FENCE:
		barrier_dsync_fence_full();
		break;
	/* Of no effect without a cache, or with a window that the MPU says is not cached: do the latter if you can. */
	case LATSCOPE_CLEAN:
		(void)sys_cache_data_flush_range((void *)at, length);
		break;
	case LATSCOPE_INVALIDATE:
		(void)sys_cache_data_invd_range((void *)at, length);
		break;
	}
}

#ifdef CONFIG_TIMER_HAS_64BIT_CYCLE_COUNTER
static uint64_t nanoseconds(void *context)
{
	return k_cyc_to_ns_floor64(k_cycle_get_64());
}
#else
/* 32 bits of cycles run over within seconds, and ticks are too coarse. */
#define nanoseconds NULL
#endif

int main(void)
{
	const struct latscope_hooks hooks = {
		.memory = { (volatile void *)DT_REG_ADDR(WINDOW), DT_REG_SIZE(WINDOW), DT_REG_ADDR(WINDOW) },
		.table = { &resource_table, sizeof resource_table, 0 },
		.kick = kick,
		.kicked = kicked,
		.barrier = barrier,
		.clock = nanoseconds,
	};

	if (!device_is_ready(mailbox)) {
		printk("latscope: the mailbox is not ready\n");
		return 0;
	}
	ipm_register_callback(mailbox, mailbox_rang, NULL);
	ipm_set_enabled(mailbox, 1);

	if (!latscope_responder_init(&responder, &hooks)) {
		printk("latscope: the window is not aligned\n");
		return 0;
	}
	latscope_responder_run(&responder);
	return 0;
}
