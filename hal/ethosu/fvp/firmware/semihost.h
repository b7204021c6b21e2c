/* Files and the console of the host, through Arm semihosting. */
#ifndef SEMIHOST_H
#define SEMIHOST_H

#include <stdint.h>

/* Modes of host_open. */
enum { HOST_READ_TEXT = 0, HOST_READ = 1, HOST_WRITE = 5 };

/* The name of the console. */
#define HOST_CONSOLE ":tt"

/* host_open returns a handle, or -1. */
int host_open(const char *name, int mode);
void host_close(int file);

/* host_read and host_write return the number of bytes that were not transferred. */
uint32_t host_read(int file, void *to, uint32_t bytes);
uint32_t host_write(int file, const void *from, uint32_t bytes);

/* host_print writes text to the console, host_print_hex a number in hexadecimal. */
void host_print(const char *text);
void host_print_hex(uint32_t number);

/* host_exit ends the simulation. */
void host_exit(int failed) __attribute__((noreturn));

#endif
