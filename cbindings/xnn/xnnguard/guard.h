#include <stddef.h>
#include <stdint.h>

struct guard_stats {
	size_t blocks, bytes; /* now allocated */
	size_t peak;          /* most bytes since the last reset */
	size_t allocations, refused;
};

/* allocator is the address of the functions that package xnn gives the library. */
const char *guard_install(const char *library, void **allocator);
void guard_set(uint8_t poison, int underrun, size_t limit);
void guard_read(struct guard_stats *out, int reset);
void *guard_malloc(size_t n);
void *guard_realloc(void *p, size_t n);
void guard_free(void *p);
int guard_memalign(void **out, size_t align, size_t n);
