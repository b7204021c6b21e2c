//go:build !cgo && !nodl && linux && (amd64 || arm64)

package xnn

import (
	"reflect"
	"sync"

	"github.com/ebitengine/purego"
)

const dynamicLoading = true

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

// bind makes a Go function of every C function, from the field's type. The few that
// every execute calls take the shortest way.
func bind(f *Functions, addresses map[string]uintptr) {
	fields := reflect.ValueOf(f).Elem()
	for i := range fields.NumField() {
		name := fields.Type().Field(i).Tag.Get("c")
		purego.RegisterFunc(fields.Field(i).Addr().Interface(), addresses[name])
	}
	f.InvokeRuntime = runtimeCall(addresses["xnn_invoke_runtime"])
	f.ReshapeRuntime = runtimeCall(addresses["xnn_reshape_runtime"])
}

// runtimeCall keeps the argument lists: purego would allocate one at every call.
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
