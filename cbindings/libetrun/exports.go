//go:build cgo

package main

// #define ETRUN_TYPES_ONLY // cgo declares the functions, without const
// #include "etrun.h"
import "C"

import (
	"context"
	"fmt"
	"time"
	"unsafe"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
)

// Limits of sizes from callers: a slice cannot have more bytes than fit into the address space.
const (
	maxBytes = 1 << 46
	maxFiles = 1 << 16
)

//export etrun_open
func etrun_open(path *C.char, data **C.char, nData C.size_t, threads C.int, maxMemory C.int64_t,
	program *C.etrun_program, text **C.char) C.int {
	return call(text, func() error {
		if path == nil || program == nil || data == nil && nData > 0 || nData > maxFiles || threads < 0 {
			return fmt.Errorf("%w of etrun_open: NULL, more than %d files, or a negative number of threads", errArgument, maxFiles)
		}
		*program = 0
		options := []etrun.Option{etrun.WithDelegates(all.Backends()...), etrun.WithThreads(int(threads)), etrun.WithMaxMemory(int64(maxMemory))}
		for k, name := range unsafe.Slice(data, nData) {
			if name == nil {
				return fmt.Errorf("%w of etrun_open: the name of file %d is NULL", errArgument, k)
			}
			options = append(options, etrun.WithDataFiles(C.GoString(name)))
		}
		p, err := etrun.Open(C.GoString(path), options...)
		if err == nil {
			*program = C.etrun_program(open(p))
		}
		return err
	})
}

//export etrun_close
func etrun_close(program C.etrun_program, text **C.char) C.int {
	return call(text, func() error {
		p, err := drop[*etrun.Program](C.uintptr_t(program))
		if err != nil {
			return err
		}
		return p.Close()
	})
}

//export etrun_method_name
func etrun_method_name(program C.etrun_program, i C.size_t, name **C.char, text **C.char) C.int {
	return call(text, func() error {
		if name == nil {
			return fmt.Errorf("%w of etrun_method_name: NULL", errArgument)
		}
		*name = nil
		p, err := take[*etrun.Program](C.uintptr_t(program))
		if err != nil {
			return err
		}
		if names := p.MethodNames(); uint64(i) < uint64(len(names)) {
			*name = C.CString(names[i])
		}
		return nil
	})
}

//export etrun_load
func etrun_load(program C.etrun_program, name *C.char, method *C.etrun_method, text **C.char) C.int {
	return call(text, func() error {
		if method == nil {
			return fmt.Errorf("%w of etrun_load: NULL", errArgument)
		}
		*method = 0
		p, err := take[*etrun.Program](C.uintptr_t(program))
		if err != nil {
			return err
		}
		wanted := ""
		if name != nil {
			wanted = C.GoString(name)
		}
		m, err := p.Load(context.Background(), wanted)
		if err == nil {
			*method = C.etrun_method(open(&instance{method: m}))
		}
		return err
	})
}

//export etrun_unload
func etrun_unload(method C.etrun_method, text **C.char) C.int {
	return call(text, func() error {
		i, err := drop[*instance](C.uintptr_t(method))
		if err != nil {
			return err
		}
		i.mu.Lock() // wait for a thread that is in a call
		defer i.mu.Unlock()
		return i.method.Close()
	})
}

//export etrun_counts
func etrun_counts(method C.etrun_method, inputs, outputs *C.size_t, text **C.char) C.int {
	return use(method, text, func(m *etrun.Method) error {
		if inputs != nil {
			*inputs = C.size_t(m.NumInputs())
		}
		if outputs != nil {
			*outputs = C.size_t(m.NumOutputs())
		}
		return nil
	})
}

//export etrun_input
func etrun_input(method C.etrun_method, i C.size_t, info *C.etrun_info, text **C.char) C.int {
	return use(method, text, func(m *etrun.Method) error {
		if info == nil {
			return fmt.Errorf("%w of etrun_input: NULL", errArgument)
		}
		if uint64(i) >= uint64(m.NumInputs()) {
			return fmt.Errorf("%w: input %d, the method has %d", errArgument, uint64(i), m.NumInputs())
		}
		*info = declared(&m.Meta().Inputs[i])
		return nil
	})
}

//export etrun_output
func etrun_output(method C.etrun_method, i C.size_t, info *C.etrun_info, text **C.char) C.int {
	return use(method, text, func(m *etrun.Method) error {
		if info == nil {
			return fmt.Errorf("%w of etrun_output: NULL", errArgument)
		}
		v, err := output(m, i)
		if err == nil {
			*info = described(&v)
		}
		return err
	})
}

//export etrun_set
func etrun_set(method C.etrun_method, i C.size_t, data unsafe.Pointer, bytes C.size_t,
	sizes *C.int64_t, rank C.size_t, text **C.char) C.int {
	return use(method, text, func(m *etrun.Method) error {
		if data == nil && bytes > 0 || bytes > maxBytes || sizes == nil && rank > 0 || rank > C.ETRUN_MAX_RANK {
			return fmt.Errorf("%w of etrun_set: NULL, %d bytes, or a rank above %d", errArgument, uint64(bytes), C.ETRUN_MAX_RANK)
		}
		if uint64(i) >= uint64(m.NumInputs()) {
			return fmt.Errorf("%w: input %d, the method has %d", errArgument, uint64(i), m.NumInputs())
		}
		return set(m, int(i), unsafe.Slice((*byte)(data), bytes), unsafe.Slice(sizes, rank))
	})
}

//export etrun_set_typed
func etrun_set_typed(method C.etrun_method, i C.size_t, dtype C.int32_t, sizes *C.int64_t, rank C.size_t,
	data unsafe.Pointer, bytes C.size_t, text **C.char) C.int {
	return use(method, text, func(m *etrun.Method) error {
		if data == nil && bytes > 0 || bytes > maxBytes || sizes == nil && rank > 0 || rank > C.ETRUN_MAX_RANK {
			return fmt.Errorf("%w of etrun_set_typed: NULL, %d bytes, or a rank above %d", errArgument, uint64(bytes), C.ETRUN_MAX_RANK)
		}
		if uint64(i) >= uint64(m.NumInputs()) {
			return fmt.Errorf("%w: input %d, the method has %d", errArgument, uint64(i), m.NumInputs())
		}
		d, err := elementType(dtype)
		if err != nil {
			return err
		}
		return setTyped(m, int(i), d, unsafe.Slice((*byte)(data), bytes), unsafe.Slice(sizes, rank))
	})
}

//export etrun_run
func etrun_run(method C.etrun_method, timeout C.int64_t, text **C.char) C.int {
	return use(method, text, func(m *etrun.Method) error {
		if timeout < 0 || timeout > C.int64_t(time.Duration(1<<62)/time.Millisecond) {
			return fmt.Errorf("%w of etrun_run: %d ms", errArgument, int64(timeout))
		}
		if timeout == 0 {
			return m.Execute(context.Background())
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(timeout)*time.Millisecond)
		defer cancel()
		return m.Execute(ctx)
	})
}

//export etrun_get
func etrun_get(method C.etrun_method, i C.size_t, buffer unsafe.Pointer, bytes C.size_t, text **C.char) C.int {
	return use(method, text, func(m *etrun.Method) error {
		v, err := output(m, i)
		if err != nil {
			return err
		}
		need := int(described(&v).bytes)
		if uint64(bytes) < uint64(need) || buffer == nil && need > 0 {
			return fmt.Errorf("%w of etrun_get: got a buffer of %d bytes, want %d", errArgument, uint64(bytes), need)
		}
		get(unsafe.Slice((*byte)(buffer), need), &v)
		return nil
	})
}

//export etrun_reset
func etrun_reset(method C.etrun_method, text **C.char) C.int {
	return use(method, text, func(m *etrun.Method) error { return m.Reset() })
}
