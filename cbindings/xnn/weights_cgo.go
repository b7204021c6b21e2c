//go:build cgo && !nodl && linux && (amd64 || arm64)

package xnn

/*
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

extern uintptr_t etrunWeightsLookUp(uintptr_t store, uint32_t seed, uintptr_t kernel, uintptr_t bias);
extern uintptr_t etrunWeightsReserve(uintptr_t store, size_t size);
extern uintptr_t etrunWeightsInsert(uintptr_t store, uint32_t seed, uintptr_t kernel, uintptr_t bias, uintptr_t at, size_t size);

// The structs of xnnpack.h. Since soname 0.20260727 the key ends with the number of a packing
// algorithm, which follows from the rest, and the provider with alias_data.
struct look_up_key {
	uint32_t seed;
	const void *kernel;
	const void *bias;
};
struct provider {
	void *context;
	size_t (*look_up)(void *, const struct look_up_key *);
	void *(*reserve_space)(void *, size_t);
	size_t (*look_up_or_insert)(void *, const struct look_up_key *, void *, size_t);
	bool (*is_finalized)(void *);
	void *(*offset_to_addr)(void *, size_t);
	uint32_t (*delete_cache)(void *);
	uint32_t (*alias_data)(void *, void *, void *);
};

// An offset into the cache is an address; XNN_CACHE_NOT_FOUND is SIZE_MAX.
static size_t offset(uintptr_t address) { return address == 0 ? SIZE_MAX : address; }

static size_t look_up(void *store, const struct look_up_key *k) {
	return offset(etrunWeightsLookUp((uintptr_t)store, k->seed, (uintptr_t)k->kernel, (uintptr_t)k->bias));
}
static void *reserve_space(void *store, size_t size) { return (void *)etrunWeightsReserve((uintptr_t)store, size); }
static size_t look_up_or_insert(void *store, const struct look_up_key *k, void *at, size_t size) {
	return offset(etrunWeightsInsert((uintptr_t)store, k->seed, (uintptr_t)k->kernel, (uintptr_t)k->bias, (uintptr_t)at, size));
}
static bool is_finalized(void *store) { return true; }
static void *offset_to_addr(void *store, size_t offset) { return (void *)offset; }
static uint32_t delete_cache(void *store) { return 0; }
// A copy that XNNPACK made of a constant is a constant of its own: it is packed anew.
static uint32_t alias_data(void *store, void *alias, void *original) { return 0; }

static uintptr_t new_provider(uintptr_t store) {
	struct provider *p = malloc(sizeof *p);
	if (p != NULL) {
		*p = (struct provider){(void *)store, look_up, reserve_space, look_up_or_insert, is_finalized, offset_to_addr, delete_cache, alias_data};
	}
	return (uintptr_t)p;
}
static void free_provider(uintptr_t p) { free((void *)p); }
*/
import "C"

func newProvider(store uintptr) WeightsCache { return WeightsCache(C.new_provider(C.uintptr_t(store))) }

func freeProvider(c WeightsCache) { C.free_provider(C.uintptr_t(c)) }
