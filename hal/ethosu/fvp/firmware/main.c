/* Runs jobs of the host, one at a time, until its input ends. */
#include <stdint.h>

#include "job.h"
#include "npu.h"
#include "semihost.h"

enum { VERSION = 1 };

/* Memory of the machine that jobs may use. */
static const struct {
	uint32_t base, bytes;
} pools[POOLS] = {
	[POOL_SRAM] = {SRAM_BASE, SRAM_BYTES},
	[POOL_DDR] = {DDR_BASE, DDR_BYTES},
};

static struct job job;
static struct reply reply;
static int console;

/* console_wait reads a line; at the end of the host's input the simulation ends. */
void console_wait(void)
{
	char c = 0;

	while (c != '\n')
		if (host_read(console, &c, 1) != 0)
			host_exit(0);
}

/* address returns the address of a range, 0 if the range is outside all pools. */
static uint32_t address(const struct range *r)
{
	if (r->pool >= POOLS || r->offset > pools[r->pool].bytes || r->bytes > pools[r->pool].bytes - r->offset)
		return 0;
	return pools[r->pool].base + r->offset;
}

static int fail(enum status status, uint32_t detail)
{
	reply.status = status;
	reply.detail = detail;
	return 1;
}

/* take reads a job and copies its bytes to memory. */
static int take(int file, uint32_t *stream, uint32_t base[REGIONS])
{
	struct range r;

	if (host_read(file, &job, sizeof(job)) != 0)
		return fail(STATUS_FILE, 0);
	reply.sequence = job.sequence;
	if (job.magic != JOB_MAGIC || job.events > EVENTS)
		return fail(STATUS_JOB, 0);
	*stream = address(&job.stream);
	if (*stream == 0 || job.stream.bytes == 0)
		return fail(STATUS_JOB, 1);
	for (uint32_t i = 0; i < REGIONS; i++) {
		base[i] = job.regions[i].bytes ? address(&job.regions[i]) : 0;
		if (job.regions[i].bytes && base[i] == 0)
			return fail(STATUS_JOB, 2 + i);
	}
	for (uint32_t i = 0; i < job.reads; i++) {
		if (host_read(file, &r, sizeof(r)) != 0)
			return fail(STATUS_FILE, 1);
		if (address(&r) == 0)
			return fail(STATUS_JOB, 100 + i);
		if (host_read(file, (void *)address(&r), r.bytes) != 0)
			return fail(STATUS_FILE, 2);
	}
	return 0;
}

/* give writes the reply and the bytes that the job requests. */
static int give(int job_file, int file)
{
	struct range r;

	reply.writes = reply.status == STATUS_OK ? job.writes : 0;
	if (host_write(file, &reply, sizeof(reply)) != 0)
		return fail(STATUS_FILE, 3);
	for (uint32_t i = 0; i < reply.writes; i++) {
		if (host_read(job_file, &r, sizeof(r)) != 0)
			return fail(STATUS_FILE, 4);
		if (address(&r) == 0)
			return fail(STATUS_JOB, 0x10000 + i);
		if (host_write(file, (void *)address(&r), r.bytes) != 0)
			return fail(STATUS_FILE, 5);
	}
	return 0;
}

static void run(void)
{
	uint32_t stream, base[REGIONS];
	int in = host_open("job.bin", HOST_READ);
	int out = host_open("reply.bin", HOST_WRITE);

	reply = (struct reply){.magic = REPLY_MAGIC};
	if (in < 0 || out < 0)
		fail(STATUS_FILE, 6);
	else if (!take(in, &stream, base))
		npu_run(&job, stream, base, &reply);
	if (out >= 0) {
		give(in, out);
		host_close(out);
	}
	if (in >= 0)
		host_close(in);
	host_print("etrun: done ");
	host_print_hex(reply.sequence);
	host_print(" ");
	host_print_hex(reply.status);
	host_print(" ");
	host_print_hex(reply.detail);
	host_print("\n");
}

int main(void)
{
	console = host_open(HOST_CONSOLE, HOST_READ_TEXT);
	host_print("etrun: firmware ");
	host_print_hex(VERSION);
	host_print(" ");
	host_print_hex(npu_config());
	host_print(" ");
	host_print_hex(SRAM_BYTES);
	host_print(" ");
	host_print_hex(DDR_BYTES);
	host_print("\n");
	for (;;) {
		console_wait();
		run();
	}
}
