/* The files by which the host and the firmware exchange jobs. All numbers are 32 bits,
 * little endian.
 *
 * job.bin is a struct job; then for each read a struct range followed by its bytes,
 * which are copied to memory; then a struct range for each write. reply.bin is a struct
 * reply followed by the bytes of the writes. The host writes job.bin and then a line
 * to the console; the firmware answers with a line when reply.bin is complete. */
#ifndef JOB_H
#define JOB_H

#include <stdint.h>

enum { JOB_MAGIC = 0x314a5445, REPLY_MAGIC = 0x31525445 }; /* "ETJ1", "ETR1" */

enum { REGIONS = 8, EVENTS = 8 };

/* Memory that jobs may use. */
enum { POOL_SRAM = 0, POOL_DDR = 1, POOLS = 2 };

struct range {
	uint32_t pool;
	uint32_t offset; /* 16-byte aligned where the NPU starts from it */
	uint32_t bytes;
};

struct job {
	uint32_t magic;
	uint32_t sequence;
	uint32_t config; /* CONFIG that the stream was compiled for */
	uint32_t count;  /* 1 to count cycles and events */
	struct range stream;
	struct range regions[REGIONS]; /* 0 bytes for none */
	uint32_t events;               /* number of the following */
	uint32_t event[EVENTS];
	uint32_t reads;
	uint32_t writes;
};

enum status {
	STATUS_OK = 0,
	STATUS_JOB = 1,    /* job.bin is invalid; detail names the field, see main.c */
	STATUS_FILE = 2,   /* job.bin ends early, or reply.bin cannot be written */
	STATUS_CONFIG = 3, /* the NPU is another; detail is its configuration */
	STATUS_NPU = 4,    /* the NPU stopped early; detail is its register STATUS */
	STATUS_EVENTS = 5, /* too many events; detail is how many can be counted */
};

struct reply {
	uint32_t magic;
	uint32_t sequence;
	uint32_t status;
	uint32_t detail;
	uint32_t qread; /* bytes of the stream that the NPU has read */
	uint32_t cycles_low, cycles_high;
	uint32_t event[EVENTS];
	uint32_t writes; /* number of ranges that follow */
};

#endif
