/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "resource_table.h"

#include <stddef.h>

#define VDEV 3
#define RPMSG 7
#define NAME_SERVICE 1
/* Linux chooses. */
#define ANYWHERE 0xFFFFFFFF

/* The number of messages that are under way at most: with buffers of 512 bytes two rings of 16 take 16 KiB. */
#define BUFFERS 16
#define ALIGN 16

volatile struct resource_table resource_table __attribute__((section(".resource_table"), used, aligned(64))) = {
	.version = 1,
	.count = 1,
	.offset = offsetof(struct resource_table, device),
	.device = {
		.type = VDEV,
		.id = RPMSG,
		.features = NAME_SERVICE,
		.rings = 2,
		.ring = {
			{ ANYWHERE, ALIGN, BUFFERS, 0, 0 },
			{ ANYWHERE, ALIGN, BUFFERS, 1, 0 },
		},
	},
};
