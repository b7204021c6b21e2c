//go:build cgo

package main

// #define ETRUN_TYPES_ONLY // cgo declares the functions, without const
// #include "etrun.h"
import "C"

import (
	"context"
	"runtime"
	"sync"
	"unsafe"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// method is the object of a method's handle.
type method struct {
	mu sync.Mutex
	*etrun.Method
	meta    *etrun.MethodMeta
	strings cStrings
	inputs  []input
	outputs runtime.Pinner // of the outputs whose memory C has
}

// input is what a method keeps for an input.
type input struct {
	last   *tensor.Tensor // of the elements that were copied last
	memory []byte         // that C writes, nil without
	pinned runtime.Pinner
}

func newMethod(m *etrun.Method, meta *etrun.MethodMeta) *method {
	return &method{Method: m, meta: meta, inputs: make([]input, len(meta.Inputs))}
}

//export etrun_load
func etrun_load(handle C.etrun_program, name *C.char, loaded *C.etrun_method, text **C.char) C.int {
	return call(text, func() error {
		if loaded == nil {
			return argument("method is NULL")
		}
		*loaded = 0
		p, err := find[*program](C.uint64_t(handle), programs)
		if err != nil {
			return err
		}
		meta, err := p.meta(name)
		if err != nil {
			return err
		}
		m, err := p.Load(context.Background(), textOf(name))
		if err == nil {
			*loaded = C.etrun_method(handles.add(methods, newMethod(m, meta)))
		}
		return err
	})
}

//export etrun_unload
func etrun_unload(handle C.etrun_method, text **C.char) C.int {
	return call(text, func() error {
		m, err := remove[*method](C.uint64_t(handle), methods)
		if err != nil {
			return err
		}
		m.mu.Lock() // wait for a thread that is in a call
		defer m.mu.Unlock()
		err = m.Close()
		m.outputs.Unpin()
		for i := range m.inputs {
			m.inputs[i].pinned.Unpin()
		}
		m.strings.free()
		return err
	})
}

// use calls f with exclusive use of a method.
func use(handle C.etrun_method, text **C.char, f func(m *method) error) C.int {
	return call(text, func() error {
		m, err := find[*method](C.uint64_t(handle), methods)
		if err != nil {
			return err
		}
		if !m.mu.TryLock() {
			return &fault{errBusy, "the method is in use by another thread"}
		}
		defer m.mu.Unlock()
		return f(m)
	})
}

//export etrun_counts
func etrun_counts(handle C.etrun_method, inputs, outputs *C.size_t, text **C.char) C.int {
	return use(handle, text, func(m *method) error {
		setCounts(inputs, outputs, m.NumInputs(), m.NumOutputs())
		return nil
	})
}

//export etrun_input
func etrun_input(handle C.etrun_method, i C.size_t, info *C.etrun_info, text **C.char) C.int {
	return use(handle, text, func(m *method) error {
		return setDeclared(info, "input", m.meta.Inputs, i, &m.strings)
	})
}

//export etrun_output
func etrun_output(handle C.etrun_method, i C.size_t, info *C.etrun_info, text **C.char) C.int {
	return use(handle, text, func(m *method) error {
		if info == nil {
			return argument("info is NULL")
		}
		e, err := m.output(i)
		if err == nil {
			*info = described(&e, m.strings.of(m.meta.Outputs[i].Name))
		}
		return err
	})
}

//export etrun_set
func etrun_set(handle C.etrun_method, i C.size_t, dtype C.int32_t, shape *C.int64_t, rank C.size_t,
	data unsafe.Pointer, bytes C.size_t, text **C.char) C.int {
	return use(handle, text, func(m *method) error {
		if err := checkIndex("input", i, m.NumInputs()); err != nil {
			return err
		}
		return m.setMemory(int(i), dtype, shape, rank, data, bytes)
	})
}

//export etrun_input_memory
func etrun_input_memory(handle C.etrun_method, i C.size_t, dtype C.int32_t, shape *C.int64_t, rank C.size_t,
	data *unsafe.Pointer, bytes *C.size_t, text **C.char) C.int {
	return use(handle, text, func(m *method) error {
		if data == nil {
			return argument("data is NULL")
		}
		if err := checkIndex("input", i, m.NumInputs()); err != nil {
			return err
		}
		d, sizes, err := m.request(dtype, shape, rank)
		if err != nil {
			return err
		}
		b, err := m.lend(int(i), d, sizes)
		if err != nil {
			return err
		}
		*data = unsafe.Pointer(unsafe.SliceData(b))
		if bytes != nil {
			*bytes = C.size_t(len(b))
		}
		return nil
	})
}

//export etrun_run
func etrun_run(handle C.etrun_method, timeout C.int64_t, text **C.char) C.int {
	return use(handle, text, func(m *method) error {
		return withTimeout(timeout, func(ctx context.Context) error {
			m.outputs.Unpin()
			return m.Execute(ctx)
		})
	})
}

//export etrun_get
func etrun_get(handle C.etrun_method, i C.size_t, dtype C.int32_t, shape *C.int64_t, rank C.size_t,
	data unsafe.Pointer, bytes C.size_t, text **C.char) C.int {
	return use(handle, text, func(m *method) error {
		e, err := m.output(i)
		if err != nil {
			return err
		}
		d, sizes, err := m.request(dtype, shape, rank)
		if err != nil {
			return err
		}
		if err := e.check(int(i), d, sizes); err != nil {
			return err
		}
		to, err := bytesOf("data", data, bytes)
		if err != nil {
			return err
		}
		if want := e.bytes(); len(to) != want {
			return argument("output %d: got memory of %d bytes, want %d for %v", i, len(to), want, &e)
		}
		copy(to, e.data())
		return nil
	})
}

//export etrun_output_memory
func etrun_output_memory(handle C.etrun_method, i C.size_t, dtype C.int32_t, data *unsafe.Pointer, bytes *C.size_t, text **C.char) C.int {
	return use(handle, text, func(m *method) error {
		if data == nil {
			return argument("data is NULL")
		}
		e, err := m.output(i)
		if err != nil {
			return err
		}
		d, err := elementType(dtype)
		if err != nil {
			return err
		}
		if err := e.check(int(i), d, e.shape); err != nil {
			return err
		}
		b := e.data()
		if len(b) > 0 {
			m.outputs.Pin(unsafe.SliceData(b))
		}
		*data = unsafe.Pointer(unsafe.SliceData(b))
		if bytes != nil {
			*bytes = C.size_t(len(b))
		}
		return nil
	})
}

//export etrun_reset
func etrun_reset(handle C.etrun_method, text **C.char) C.int {
	return use(handle, text, func(m *method) error {
		m.outputs.Unpin()
		return m.Reset()
	})
}
