//go:build !cgo && !nodl && linux && (amd64 || arm64)

package xnn

import (
	"runtime"
	"sync"

	"github.com/ebitengine/purego"
)

// provider is struct xnn_weights_cache_provider; the last function is called since soname 0.20260727.
type provider struct {
	context                                                                                 uintptr
	lookUp, reserveSpace, lookUpOrInsert, isFinalized, offsetToAddr, deleteCache, aliasData uintptr
	pin                                                                                     runtime.Pinner
}

// lookUpKey is struct xnn_weights_cache_look_up_key.
type lookUpKey struct {
	seed         uint32
	_            uint32
	kernel, bias uintptr
}

func (k *lookUpKey) key() WeightsKey {
	return WeightsKey{Seed: k.seed, Kernel: Address(k.kernel), Bias: Address(k.bias)}
}

// offset into the cache: an address; XNN_CACHE_NOT_FOUND is SIZE_MAX.
func offset(a Address) uintptr {
	if a == 0 {
		return ^uintptr(0)
	}
	return uintptr(a)
}

// callbacks are created once, because purego never frees them.
var callbacks = sync.OnceValue(func() provider {
	return provider{
		lookUp: purego.NewCallback(func(store uintptr, k *lookUpKey) uintptr {
			return offset(storeOf(store).LookUp(k.key()))
		}),
		reserveSpace: purego.NewCallback(func(store uintptr, size uint) uintptr {
			return uintptr(storeOf(store).Reserve(size))
		}),
		lookUpOrInsert: purego.NewCallback(func(store uintptr, k *lookUpKey, at uintptr, size uint) uintptr {
			return offset(storeOf(store).Insert(k.key(), Address(at), size))
		}),
		isFinalized:  purego.NewCallback(func(uintptr) bool { return true }),
		offsetToAddr: purego.NewCallback(func(_, offset uintptr) uintptr { return offset }),
		deleteCache:  purego.NewCallback(func(uintptr) uintptr { return 0 }),
		// A copy that XNNPACK made of a constant is a constant of its own: it is packed anew.
		aliasData: purego.NewCallback(func(_, _, _ uintptr) uintptr { return 0 }),
	}
})

// providers keeps memory referenced from C alive; the caller holds the lock of stores.
var providers = make(map[WeightsCache]*provider)

func newProvider(store uintptr) WeightsCache {
	p := new(provider)
	*p = callbacks()
	p.context = store
	p.pin.Pin(p)
	c := WeightsCache(addressOf(p))
	providers[c] = p
	return c
}

func freeProvider(c WeightsCache) {
	providers[c].pin.Unpin()
	delete(providers, c)
}
