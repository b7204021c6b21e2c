package xnn

import "sync"

// WeightsStore stores packed weights for the runtimes that are created with it (struct
// xnn_weights_cache_provider). XNNPACK calls it only from CreateRuntime, in the order of the
// subgraph's nodes, on the calling goroutine.
type WeightsStore interface {
	// LookUp returns the address of weights packed earlier under the key, 0 if unknown.
	LookUp(key WeightsKey) Address
	// Reserve returns 64-byte aligned memory for weights to be packed, 0 if there is none.
	Reserve(size uint) Address
	// Insert stores size packed bytes at the address that Reserve returned, and returns the address
	// of equal bytes to use from now on, which may be different. at is 0 for weights that LookUp
	// found.
	Insert(key WeightsKey, at Address, size uint) Address
}

// WeightsKey is struct xnn_weights_cache_look_up_key: how the weights are packed, and the addresses
// of the constants that they are packed from. Quantization scales are also packed but are not part
// of it.
type WeightsKey struct {
	Seed         uint32
	Kernel, Bias Address
}

// stores are the stores in use, by the number that C code refers to them by.
var stores struct {
	sync.RWMutex
	next uintptr
	by   map[uintptr]WeightsStore
}

// NewWeightsCache returns a cache for CreateRuntime. Call Delete after the runtimes created with it
// have been deleted.
func NewWeightsCache(store WeightsStore) *StoreCache {
	stores.Lock()
	defer stores.Unlock()
	if stores.by == nil {
		stores.by = make(map[uintptr]WeightsStore)
	}
	stores.next++
	stores.by[stores.next] = store
	return &StoreCache{WeightsCache: newProvider(stores.next), number: stores.next}
}

// StoreCache is a weights cache backed by a WeightsStore.
type StoreCache struct {
	WeightsCache
	number uintptr
}

// Delete frees the cache; the store manages its own memory.
func (c *StoreCache) Delete() {
	stores.Lock()
	defer stores.Unlock()
	if _, ok := stores.by[c.number]; ok {
		delete(stores.by, c.number)
		freeProvider(c.WeightsCache)
	}
}

func storeOf(number uintptr) WeightsStore {
	stores.RLock()
	defer stores.RUnlock()
	return stores.by[number]
}
