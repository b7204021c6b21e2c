/* Register driver for Ethos-U55, U65 and U85. Register names and fields are those of
 * the technical reference manuals. */
#include "npu.h"

#ifndef NPU_BASE
#error "NPU_BASE: the address of the NPU's registers"
#endif

#define REGISTER(offset) (*(volatile uint32_t *)(NPU_BASE + (offset)))
#define STATUS REGISTER(0x004)
#define CMD REGISTER(0x008)
#define RESET REGISTER(0x00c)
#define QBASE_LOW REGISTER(0x010)
#define QBASE_HIGH REGISTER(0x014)
#define QREAD REGISTER(0x018)
#define QCONFIG REGISTER(0x01c)
#define QSIZE REGISTER(0x020)
#define CONFIG REGISTER(0x028)
#define REGIONCFG REGISTER(0x03c)
#define AXI_LIMIT(i) REGISTER(0x040 + 4 * (i)) /* U55, U65 */
#define MEM_ATTR(i) REGISTER(0x040 + 4 * (i))  /* U85 */
#define AXI_SRAM REGISTER(0x050)               /* U85 */
#define AXI_EXT REGISTER(0x054)                /* U85 */
#define BASEP_LOW(i) REGISTER(0x080 + 8 * (i))
#define BASEP_HIGH(i) REGISTER(0x084 + 8 * (i))

/* Fields of STATUS. */
enum {
	RUNNING = 1 << 0,
	RESETTING = 1 << 3,
	END_REACHED = 1 << 5,
	/* bus fault, parse error, watchdog, ECC, branch fault */
	FAULTS = 1 << 2 | 1 << 4 | 1 << 7 | 1 << 8 | 1 << 9,
};

/* Fields of CMD. Without the Q fields the NPU keeps its clock and power. */
enum { TRANSITION_TO_RUNNING = 1 << 0, CLEAR_IRQ = 1 << 1 };

/* Fields of RESET: secure, privileged. */
enum { PENDING_PRIVILEGED = 1 << 0 };

/* CONFIG.product. */
enum { U55 = 0, U65 = 1, U85 = 2 };

/* Fields of CONFIG that a stream depends on: product, command stream version, MACs. */
enum { CONFIG_MASK = 0xf00000ff };

/* Counters. The U85 has their registers at higher offsets. */
#define PMU(offset) REGISTER((product() == U85 ? 0x1000 : 0) + (offset))
#define PMCR PMU(0x180)
#define PMCNTENSET PMU(0x184)
#define PMCNTENCLR PMU(0x188)
#define PMCCNTR_LOW PMU(0x1a0)
#define PMCCNTR_HIGH PMU(0x1a4)
#define PMCCNTR_CFG PMU(0x1a8)
#define PMEVCNTR(i) PMU(0x300 + 4 * (i))
#define PMEVTYPER(i) PMU(0x380 + 4 * (i))

enum { COUNT = 1, RESET_EVENTS = 2, RESET_CYCLES = 4, CYCLE_COUNTER = 1u << 31, EVENT_CYCLE = 17 };

static uint32_t product(void)
{
	return CONFIG >> 28;
}

uint32_t npu_config(void)
{
	return CONFIG;
}

/* Ports through which regions are accessed. The first and second of each pair are
 * for different traffic of the same port. */
enum { PORT_SRAM = 0, PORT_SRAM_2 = 1, PORT_EXT = 2, PORT_EXT_2 = 3 };

/* port chooses the port by the memory of the region. The second port of the U55 is read-only. */
static uint32_t port(const struct job *job, int region)
{
	if (region == 0)
		return PORT_EXT_2;
	if (job->regions[region].pool == POOL_SRAM || product() == U55)
		return region == 1 ? PORT_SRAM : PORT_SRAM_2;
	return PORT_EXT;
}

static void ports(const struct job *job)
{
	uint32_t regions = 0;

	for (int i = 0; i < REGIONS; i++)
		regions |= port(job, i) << 2 * i;
	REGIONCFG = regions;
	QCONFIG = PORT_EXT;
	if (product() == U85) {
		for (int i = 0; i < 4; i++)
			MEM_ATTR(i) = i < PORT_EXT ? 0 : 1 << 2; /* axi_port */
		/* bursts of 256 bytes, 64 reads and 32 writes outstanding */
		AXI_SRAM = 2 << 16 | 31 << 8 | 63;
		AXI_EXT = 2 << 16 | 31 << 8 | 63;
		return;
	}
	/* bursts of 64 bytes; 32 reads and 16 writes outstanding, on the U65 64 and 32 */
	for (int i = 0; i < 4; i++)
		AXI_LIMIT(i) = product() == U55 ? 15 << 24 | 31 << 16 : 31 << 24 | 63 << 16;
}

static void count(const struct job *job)
{
	uint32_t enable = CYCLE_COUNTER;

	PMCR = COUNT;
	PMCCNTR_CFG = EVENT_CYCLE;
	for (uint32_t i = 0; i < job->events; i++) {
		PMEVTYPER(i) = job->event[i];
		enable |= 1u << i;
	}
	PMCNTENSET = enable;
	PMCR = COUNT | RESET_EVENTS | RESET_CYCLES;
}

static void read_counts(const struct job *job, struct reply *reply)
{
	PMCNTENCLR = 0xffffffff;
	reply->cycles_low = PMCCNTR_LOW;
	reply->cycles_high = PMCCNTR_HIGH;
	for (uint32_t i = 0; i < job->events; i++)
		reply->event[i] = PMEVCNTR(i);
	PMCR = 0;
}

static void fail(struct reply *reply, enum status status, uint32_t detail)
{
	reply->status = status;
	reply->detail = detail;
}

/* finish waits until the NPU has stopped or failed. The NPU may start with a delay. */
static uint32_t finish(void)
{
	for (uint32_t seen = 0;;) {
		uint32_t status = STATUS;

		seen |= status;
		if ((status & FAULTS) || (!(status & RUNNING) && (seen & (RUNNING | END_REACHED))))
			return status;
	}
}

void npu_run(const struct job *job, uint32_t stream, const uint32_t base[REGIONS], struct reply *reply)
{
	uint32_t counters = PMCR >> 11 & 31;
	uint32_t status;

	if ((job->config ^ CONFIG) & CONFIG_MASK) {
		fail(reply, STATUS_CONFIG, CONFIG);
		return;
	}
	if (job->events > counters) {
		fail(reply, STATUS_EVENTS, counters);
		return;
	}
	RESET = PENDING_PRIVILEGED;
	while (STATUS & RESETTING)
		;
	ports(job);
	QBASE_LOW = stream;
	QBASE_HIGH = 0;
	QSIZE = job->stream.bytes;
	for (int i = 0; i < REGIONS; i++) {
		BASEP_LOW(i) = base[i];
		BASEP_HIGH(i) = 0;
	}
	if (job->count)
		count(job);
	__asm__ volatile("dsb" ::: "memory");
	CMD = TRANSITION_TO_RUNNING;
	status = finish();
	__asm__ volatile("dsb" ::: "memory");
	if (job->count)
		read_counts(job, reply);
	CMD = CLEAR_IRQ;
	reply->qread = QREAD;
	if ((status & FAULTS) || !(status & END_REACHED))
		fail(reply, STATUS_NPU, status);
}
