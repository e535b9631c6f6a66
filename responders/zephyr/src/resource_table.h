/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef RESOURCE_TABLE_H
#define RESOURCE_TABLE_H

#include <stdint.h>

/* The table: Linux reads it in the firmware's file, and writes to its copy in our memory where
 * the rings are, and that the driver is ready. */
struct resource_table {
	uint32_t version, count, reserved[2], offset;
	struct {
		uint32_t type, id, notify, features, driver_features, config_length;
		uint8_t status, rings, reserved[2];
		struct {
			uint32_t address, align, num, notify, reserved;
		} ring[2];
	} device;
};

extern volatile struct resource_table resource_table;

#endif
