#include "semihost.h"

enum {
	SYS_OPEN = 0x01,
	SYS_CLOSE = 0x02,
	SYS_WRITE0 = 0x04,
	SYS_WRITE = 0x05,
	SYS_READ = 0x06,
	SYS_EXIT = 0x18,
};

/* Reasons of SYS_EXIT. */
enum { RUN_TIME_ERROR = 0x20023, APPLICATION_EXIT = 0x20026 };

static int call(int operation, const void *argument)
{
	register int r0 __asm__("r0") = operation;
	register const void *r1 __asm__("r1") = argument;

	__asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
	return r0;
}

int host_open(const char *name, int mode)
{
	uintptr_t length = 0;

	while (name[length])
		length++;
	uintptr_t block[] = {(uintptr_t)name, (uintptr_t)mode, length};
	return call(SYS_OPEN, block);
}

void host_close(int file)
{
	uintptr_t block[] = {(uintptr_t)file};

	call(SYS_CLOSE, block);
}

uint32_t host_read(int file, void *to, uint32_t bytes)
{
	uintptr_t block[] = {(uintptr_t)file, (uintptr_t)to, bytes};

	return (uint32_t)call(SYS_READ, block);
}

uint32_t host_write(int file, const void *from, uint32_t bytes)
{
	uintptr_t block[] = {(uintptr_t)file, (uintptr_t)from, bytes};

	return (uint32_t)call(SYS_WRITE, block);
}

void host_print(const char *text)
{
	call(SYS_WRITE0, text);
}

void host_print_hex(uint32_t number)
{
	char text[9];

	for (int i = 0; i < 8; i++)
		text[i] = "0123456789abcdef"[number >> (28 - 4 * i) & 15];
	text[8] = 0;
	host_print(text);
}

void host_exit(int failed)
{
	for (;;)
		call(SYS_EXIT, (const void *)(uintptr_t)(failed ? RUN_TIME_ERROR : APPLICATION_EXIT));
}
