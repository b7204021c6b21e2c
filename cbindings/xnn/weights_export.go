//go:build cgo && !nodl && linux && (amd64 || arm64)

package xnn

// #include <stddef.h>
// #include <stdint.h>
import "C"

//export etrunWeightsLookUp
func etrunWeightsLookUp(store C.uintptr_t, seed C.uint32_t, kernel, bias C.uintptr_t) C.uintptr_t {
	key := WeightsKey{Seed: uint32(seed), Kernel: Address(kernel), Bias: Address(bias)}
	return C.uintptr_t(storeOf(uintptr(store)).LookUp(key))
}

//export etrunWeightsReserve
func etrunWeightsReserve(store C.uintptr_t, size C.size_t) C.uintptr_t {
	return C.uintptr_t(storeOf(uintptr(store)).Reserve(uint(size)))
}

//export etrunWeightsInsert
func etrunWeightsInsert(store C.uintptr_t, seed C.uint32_t, kernel, bias, at C.uintptr_t, size C.size_t) C.uintptr_t {
	key := WeightsKey{Seed: uint32(seed), Kernel: Address(kernel), Bias: Address(bias)}
	return C.uintptr_t(storeOf(uintptr(store)).Insert(key, Address(at), uint(size)))
}
