/* For machines without an NPU: the host runs the stream.
 *
 * npu.req is a struct request, the stream, and the bytes of all regions; npu.rsp is a
 * struct response and the bytes of all regions but the first, which is constants. */
#include "npu.h"
#include "semihost.h"

struct request {
	uint32_t config;
	uint32_t stream; /* bytes */
	uint32_t regions[REGIONS];
};

struct response {
	uint32_t status; /* of the reply */
	uint32_t detail;
	uint32_t cycles;
};

void console_wait(void);

uint32_t npu_config(void)
{
	return 0xffffffff; /* any */
}

static int ask(const struct job *job, uint32_t stream, const uint32_t base[REGIONS])
{
	struct request request = {job->config, job->stream.bytes, {0}};
	int file = host_open("npu.req", HOST_WRITE);
	int failed = 0;

	for (int i = 0; i < REGIONS; i++)
		request.regions[i] = job->regions[i].bytes;
	failed |= host_write(file, &request, sizeof(request)) != 0;
	failed |= host_write(file, (void *)stream, job->stream.bytes) != 0;
	for (int i = 0; i < REGIONS; i++)
		if (job->regions[i].bytes)
			failed |= host_write(file, (void *)base[i], job->regions[i].bytes) != 0;
	host_close(file);
	return failed;
}

static int take(const struct job *job, const uint32_t base[REGIONS], struct response *response)
{
	int file = host_open("npu.rsp", HOST_READ);
	int failed = host_read(file, response, sizeof(*response)) != 0;

	for (int i = 1; i < REGIONS && !response->status; i++)
		if (job->regions[i].bytes)
			failed |= host_read(file, (void *)base[i], job->regions[i].bytes) != 0;
	host_close(file);
	return failed;
}

void npu_run(const struct job *job, uint32_t stream, const uint32_t base[REGIONS], struct reply *reply)
{
	struct response response = {STATUS_FILE, 0, 0};

	if (!ask(job, stream, base)) {
		host_print("etrun: npu\n");
		console_wait();
		if (take(job, base, &response))
			response.status = STATUS_FILE;
	}
	reply->status = response.status;
	reply->detail = response.detail;
	reply->qread = job->stream.bytes;
	if (job->count)
		reply->cycles_low = response.cycles;
	for (uint32_t i = 0; job->count && i < job->events; i++)
		reply->event[i] = job->event[i];
}
