//go:build !cgo && !nodl && linux && (amd64 || arm64)

package xnn

import (
	"reflect"
	"runtime"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// DynamicLoading reports whether this build can open libraries.
const DynamicLoading = true

func dlopen(path string, global bool) (uintptr, error) {
	mode := purego.RTLD_NOW | purego.RTLD_LOCAL
	if global {
		mode = purego.RTLD_NOW | purego.RTLD_GLOBAL
	}
	return purego.Dlopen(path, mode)
}

func dlsym(handle uintptr, name string) uintptr {
	address, err := purego.Dlsym(handle, name)
	if err != nil {
		return 0
	}
	return address
}

func trim(address uintptr) { purego.SyscallN(address, 0) }

// bind creates a Go function for every C function from the field's type. Functions called in every
// run use the shortest path.
func bind(f *Functions, addresses map[string]uintptr) {
	fields := reflect.ValueOf(f).Elem()
	for i := range fields.NumField() {
		name := fields.Type().Field(i).Tag.Get("c")
		purego.RegisterFunc(fields.Field(i).Addr().Interface(), addresses[name])
	}
	f.InvokeRuntime = runtimeCall(addresses["xnn_invoke_runtime"])
	f.ReshapeRuntime = runtimeCall(addresses["xnn_reshape_runtime"])
	f.GetRuntimeProfilingInfo = profilingCall(addresses["xnn_get_runtime_profiling_info"])
}

// runtimeCall reuses the argument lists: purego would allocate one per call.
func runtimeCall(address uintptr) func(Runtime) Status {
	lists := sync.Pool{New: func() any { return new([1]uintptr) }}
	return func(r Runtime) Status {
		args := lists.Get().(*[1]uintptr)
		args[0] = uintptr(r)
		status, _, _ := purego.SyscallN(address, args[:]...)
		lists.Put(args)
		return Status(uint32(status))
	}
}

// profilingCall is runtimeCall for a function called in observed runs.
func profilingCall(address uintptr) func(Runtime, ProfileInfo, uint, *byte, *uint) Status {
	lists := sync.Pool{New: func() any { return new([5]uintptr) }}
	return func(r Runtime, info ProfileInfo, size uint, value *byte, need *uint) Status {
		args := lists.Get().(*[5]uintptr)
		*args = [5]uintptr{uintptr(r), uintptr(info), uintptr(size), uintptr(unsafe.Pointer(value)), uintptr(unsafe.Pointer(need))}
		status, _, _ := purego.SyscallN(address, args[:]...)
		lists.Put(args)
		runtime.KeepAlive(value)
		runtime.KeepAlive(need)
		return Status(uint32(status))
	}
}
