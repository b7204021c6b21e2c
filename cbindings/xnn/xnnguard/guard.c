//go:build cgo && !nodl && linux && (amd64 || arm64)

#define _GNU_SOURCE
#include "guard.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A slot is 2^class pages and a page without access behind them. Slots of a class lie
 * in a range of addresses of their own, behind a page without access. */
enum { classes = 18, check = 64 };
static const size_t range = (size_t)8 << 30;

struct slot {
	uint8_t *at; /* NULL while it is free */
	size_t size;
	int32_t next; /* in the queue of free slots */
	uint8_t poison;
};

struct class {
	uint8_t *base;
	struct slot *slots;
	int32_t count, limit; /* slots in use so far, and at most */
	int32_t first, last;  /* queue of free slots */
	int32_t waiting;      /* its length */
};

static struct {
	pthread_mutex_t lock;
	size_t page, limit;
	uint8_t *base;
	int underrun;
	uint8_t poison;
	struct class classes[classes];
	struct guard_stats stats;
} heap = {.lock = PTHREAD_MUTEX_INITIALIZER, .limit = SIZE_MAX};

static void fail(const char *what, const void *at, size_t size) {
	fprintf(stderr, "guard: %s: block %p of %zu bytes\n", what, at, size);
	abort();
}

static int init(void) {
	if (heap.base != NULL) {
		return 0;
	}
	heap.page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *base = mmap(NULL, classes * range, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED) {
		return -1;
	}
	for (int k = 0; k < classes; k++) {
		struct class *c = &heap.classes[k];
		size_t stride = (heap.page << k) + heap.page;
		c->base = base + (size_t)k * range + heap.page;
		c->limit = (int32_t)((range - heap.page) / stride);
		c->first = c->last = -1;
		c->slots = mmap(NULL, (size_t)c->limit * sizeof(struct slot), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (c->slots == MAP_FAILED) {
			return -1;
		}
	}
	heap.base = base;
	return 0;
}

/* quarantine is how many free slots of a class wait, without access, before the first
 * of them is used again. */
static int32_t quarantine(int k) { return k < 7 ? 256 >> k : 2; }

static int32_t take(struct class *c, int k) {
	int32_t i = c->first;
	if (i >= 0 && (c->waiting > quarantine(k) || c->count == c->limit)) {
		c->first = c->slots[i].next;
		if (c->first < 0) {
			c->last = -1;
		}
		c->waiting--;
		return i;
	}
	return c->count < c->limit ? c->count++ : -1;
}

/* full reports so many blocks that the system may refuse further changes of access:
 * it counts parts of the address space. Further blocks are of the ordinary heap. */
static int full(void) { return heap.stats.blocks >= 12000; }

static void *allocate(size_t n, size_t align) {
	int k = 0;
	while (k < classes && (heap.page << k) < n) {
		k++;
	}
	if (k == classes || align > heap.page || n > heap.limit || heap.stats.bytes > heap.limit - n) {
		heap.stats.refused++;
		return NULL;
	}
	struct class *c = &heap.classes[k];
	int32_t i = take(c, k);
	if (i < 0) {
		heap.stats.refused++;
		return NULL;
	}
	size_t size = heap.page << k;
	uint8_t *start = c->base + (size_t)i * (size + heap.page), *end = start + size;
	if (mprotect(start, size, PROT_READ | PROT_WRITE) != 0) {
		fail("mprotect", start, size);
	}
	uint8_t *p = heap.underrun ? start : (uint8_t *)((uintptr_t)(end - n) & ~(uintptr_t)(align - 1));
	if (size <= (size_t)256 << 10) {
		memset(start, heap.poison, size);
	} else {
		size_t most = (size_t)4 << 20;
		memset(p, heap.poison, n < most ? n : most);
		memset(p + n, heap.poison, (size_t)(end - (p + n)) < check ? (size_t)(end - (p + n)) : check);
		memset(p - start < check ? start : p - check, heap.poison, p - start < check ? (size_t)(p - start) : check);
	}
	c->slots[i] = (struct slot){.at = p, .size = n, .next = -1, .poison = heap.poison};
	heap.stats.blocks++;
	heap.stats.allocations++;
	heap.stats.bytes += n;
	if (heap.stats.bytes > heap.stats.peak) {
		heap.stats.peak = heap.stats.bytes;
	}
	return p;
}

/* locate finds the slot of an address of the heap. */
static struct slot *locate(const uint8_t *p, struct class **c, int *k, int32_t *i) {
	*k = (int)((size_t)(p - heap.base) / range);
	*c = &heap.classes[*k];
	*i = (int32_t)((size_t)(p - (*c)->base) / ((heap.page << *k) + heap.page));
	struct slot *s = &(*c)->slots[*i];
	if (*i >= (*c)->count || s->at != p) {
		fail("free of what is no block, or no longer one", p, 0);
	}
	return s;
}

static int ours(const void *p) {
	const uint8_t *q = p;
	return heap.base != NULL && q >= heap.base && q < heap.base + classes * range;
}

static void release(uint8_t *p) {
	struct class *c;
	int k;
	int32_t i;
	struct slot *s = locate(p, &c, &k, &i);
	size_t size = heap.page << k;
	uint8_t *start = c->base + (size_t)i * (size + heap.page), *end = start + size;
	for (uint8_t *q = p - start < check ? start : p - check; q < p; q++) {
		if (*q != s->poison) {
			fail("write in front", p, s->size);
		}
	}
	for (uint8_t *q = p + s->size; q < end && q < p + s->size + check; q++) {
		if (*q != s->poison) {
			fail("write behind", p, s->size);
		}
	}
	if (k > 4) {
		madvise(start, size, MADV_DONTNEED);
	}
	if (mprotect(start, size, PROT_NONE) != 0) {
		fail("mprotect", start, size);
	}
	heap.stats.blocks--;
	heap.stats.bytes -= s->size;
	s->at = NULL;
	s->next = -1;
	if (c->last < 0) {
		c->first = i;
	} else {
		c->slots[c->last].next = i;
	}
	c->last = i;
	c->waiting++;
}

void *guard_malloc(size_t n) {
	pthread_mutex_lock(&heap.lock);
	void *p = full() ? malloc(n) : allocate(n, 16);
	pthread_mutex_unlock(&heap.lock);
	return p;
}

int guard_memalign(void **out, size_t align, size_t n) {
	pthread_mutex_lock(&heap.lock);
	void *p = NULL;
	if (!full()) {
		p = allocate(n, align);
	} else if (posix_memalign(&p, align, n) != 0) {
		p = NULL;
	}
	pthread_mutex_unlock(&heap.lock);
	if (p == NULL) {
		return ENOMEM;
	}
	*out = p;
	return 0;
}

void guard_free(void *p) {
	if (p == NULL) {
		return;
	}
	if (!ours(p)) {
		free(p);
		return;
	}
	pthread_mutex_lock(&heap.lock);
	release(p);
	pthread_mutex_unlock(&heap.lock);
}

void *guard_realloc(void *p, size_t n) {
	if (p == NULL) {
		return guard_malloc(n);
	}
	if (!ours(p)) {
		return realloc(p, n);
	}
	pthread_mutex_lock(&heap.lock);
	struct class *c;
	int k;
	int32_t i;
	size_t old = locate(p, &c, &k, &i)->size;
	void *q = full() ? malloc(n) : allocate(n, 16);
	if (q != NULL) {
		memcpy(q, p, old < n ? old : n);
		release(p);
	}
	pthread_mutex_unlock(&heap.lock);
	return q;
}

void guard_set(uint8_t poison, int underrun, size_t limit) {
	pthread_mutex_lock(&heap.lock);
	heap.poison = poison;
	heap.underrun = underrun;
	heap.limit = limit;
	pthread_mutex_unlock(&heap.lock);
}

void guard_read(struct guard_stats *out, int reset) {
	pthread_mutex_lock(&heap.lock);
	*out = heap.stats;
	if (reset) {
		heap.stats.peak = heap.stats.bytes;
		heap.stats.refused = 0;
	}
	pthread_mutex_unlock(&heap.lock);
}

static const struct {
	const char *name;
	void *to;
} functions[] = { /* in the order of the allocator's */
	{"malloc", guard_malloc}, {"realloc", guard_realloc}, {"free", guard_free}, {"posix_memalign", guard_memalign},
};

/* bind points the library's relocations of the heap's functions at ours, and reports
 * how many there were. */
static int bind(const struct link_map *map, const ElfW(Rela) *rela, size_t size, const ElfW(Sym) *symbols, const char *strings) {
	int bound = 0;
	for (size_t i = 0; i < size / sizeof(*rela); i++) {
		const char *name = strings + symbols[ELF64_R_SYM(rela[i].r_info)].st_name;
		for (size_t f = 0; f < sizeof(functions) / sizeof(functions[0]); f++) {
			if (strcmp(name, functions[f].name) != 0) {
				continue;
			}
			void **place = (void **)(map->l_addr + rela[i].r_offset);
			void *page = (void *)((uintptr_t)place & ~(uintptr_t)(heap.page - 1));
			if (mprotect(page, heap.page, PROT_READ | PROT_WRITE) != 0) {
				return -1;
			}
			*place = functions[f].to;
			bound++;
		}
	}
	return bound;
}

const char *guard_install(const char *library, void **allocator) {
	void *handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
	struct link_map *map = NULL;
	if (handle == NULL || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) {
		return "the library is not loaded";
	}
	if (init() != 0) {
		return "no address space";
	}
	const ElfW(Rela) *rela = NULL, *jumps = NULL;
	const ElfW(Sym) *symbols = NULL;
	const char *strings = NULL;
	size_t size = 0, jumpSize = 0;
	for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
		switch (d->d_tag) {
		case DT_RELA: rela = (const void *)d->d_un.d_ptr; break;
		case DT_RELASZ: size = d->d_un.d_val; break;
		case DT_JMPREL: jumps = (const void *)d->d_un.d_ptr; break;
		case DT_PLTRELSZ: jumpSize = d->d_un.d_val; break;
		case DT_SYMTAB: symbols = (const void *)d->d_un.d_ptr; break;
		case DT_STRTAB: strings = (const void *)d->d_un.d_ptr; break;
		}
	}
	if (symbols == NULL || strings == NULL) {
		return "no symbols";
	}
	int a = bind(map, rela, size, symbols, strings), b = bind(map, jumps, jumpSize, symbols, strings);
	if (a < 0 || b < 0) {
		return "relocations cannot be changed";
	}
	for (size_t f = 0; f < sizeof(functions) / sizeof(functions[0]); f++) {
		allocator[f] = functions[f].to;
	}
	return a + b < 4 ? "relocations of the heap's functions are missing" : NULL;
}
