package xnn

import "sync"

// WeightsStore keeps packed weights for the runtimes that are created with it
// (struct xnn_weights_cache_provider). XNNPACK calls it from CreateRuntime alone, in
// the order of the subgraph's nodes, on the calling goroutine.
type WeightsStore interface {
	// LookUp is where weights packed earlier under the key are, 0 if not known.
	LookUp(key WeightsKey) Address
	// Reserve gives 64-byte aligned space for weights about to be packed, 0 if there
	// is none.
	Reserve(size uint) Address
	// Insert keeps size packed bytes at the address that Reserve gave, and returns
	// where equal ones are from now on, which may be elsewhere. at is 0 for weights
	// that LookUp found.
	Insert(key WeightsKey, at Address, size uint) Address
}

// WeightsKey is struct xnn_weights_cache_look_up_key: how the weights are packed, and
// where the constants are that they are packed from. Quantization scales are packed
// too but are not part of it.
type WeightsKey struct {
	Seed         uint32
	Kernel, Bias Address
}

// stores are the stores in use, by the number that C knows them by.
var stores struct {
	sync.RWMutex
	next uintptr
	by   map[uintptr]WeightsStore
}

// NewWeightsCache makes a cache for CreateRuntime. Runtimes that were created with it
// use it until they are deleted; then Delete it.
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

// StoreCache is a weights cache over a WeightsStore.
type StoreCache struct {
	WeightsCache
	number uintptr
}

// Delete ends the cache; the store's memory is the store's affair.
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
