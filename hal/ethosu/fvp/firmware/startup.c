/* Reset and faults of a Cortex-M55 or M85. Caches and MPU stay off: the NPU and the
 * CPU see the same memory at all times. */
#include <stdint.h>

#include "semihost.h"

int main(void);

extern uint32_t stack_top[], bss_start[], bss_end[];

/* Fault status registers. */
#define CFSR (*(volatile uint32_t *)0xe000ed28)
#define BFAR (*(volatile uint32_t *)0xe000ed38)

void reset(void);

void reset(void)
{
	for (uint32_t *p = bss_start; p < bss_end; p++)
		*p = 0;
	host_exit(main());
}

/* fault reports a processor fault to the host. frame holds the registers that the exception
 * stacked: r0 to r3, r12, lr, pc, xPSR. */
__attribute__((used)) static void fault(const uint32_t *frame)
{
	host_print("etrun: fault: pc ");
	host_print_hex(frame[6]);
	host_print(" cfsr ");
	host_print_hex(CFSR);
	host_print(" bfar ");
	host_print_hex(BFAR);
	host_print("\n");
	host_exit(1);
}

__attribute__((naked)) static void exception(void)
{
	__asm__("mrs r0, msp\n\tb fault");
}

/* Vectors of the system exceptions. The NPU is polled, so no interrupt is used. */
__attribute__((used, section(".vectors"))) static const void *const vectors[16] = {
	stack_top, (void *)reset, (void *)exception, (void *)exception, (void *)exception, (void *)exception,
	(void *)exception, (void *)exception, 0, 0, 0, (void *)exception, (void *)exception, 0, (void *)exception,
	(void *)exception,
};

/* Functions that the compiler may call. */
void *memset(void *to, int value, unsigned int bytes)
{
	for (unsigned char *p = to; bytes > 0; bytes--)
		*p++ = (unsigned char)value;
	return to;
}

void *memcpy(void *restrict to, const void *restrict from, unsigned int bytes)
{
	unsigned char *p = to;

	for (const unsigned char *q = from; bytes > 0; bytes--)
		*p++ = *q++;
	return to;
}
