//go:build cgo

package main

// #define ETRUN_TYPES_ONLY // cgo declares the functions, without const
// #include "etrun.h"
import "C"

import (
	"context"
	"time"
	"unsafe"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// withTimeout calls f with a context that ends after a number of milliseconds, 0 for never.
func withTimeout(ms C.int64_t, f func(ctx context.Context) error) error {
	if ms < 0 || ms > C.int64_t(time.Duration(1<<62)/time.Millisecond) {
		return argument("timeout_ms is %d, want 0 or more", int64(ms))
	}
	if ms == 0 {
		return f(context.Background())
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(ms)*time.Millisecond)
	defer cancel()
	return f(ctx)
}

// valuesOf returns the inputs and outputs of a call.
func valuesOf(inputs *C.etrun_value, nIn C.size_t, outputs *C.etrun_value, nOut C.size_t) (in, out []C.etrun_value, err error) {
	if in, err = listOf("inputs", inputs, nIn); err == nil {
		out, err = listOf("outputs", outputs, nOut)
	}
	return in, out, err
}

//export etrun_invoke
func etrun_invoke(handle C.etrun_method, inputs *C.etrun_value, nIn C.size_t, outputs *C.etrun_value, nOut C.size_t,
	timeout C.int64_t, text **C.char) C.int {
	return use(handle, text, func(m *method) error {
		in, out, err := valuesOf(inputs, nIn, outputs, nOut)
		if err != nil {
			return err
		}
		return withTimeout(timeout, func(ctx context.Context) error { return m.invoke(ctx, in, out) })
	})
}

// invoke sets the inputs, runs the method and copies the outputs.
func (m *method) invoke(ctx context.Context, in, out []C.etrun_value) error {
	switch {
	case len(in) > 0 && len(in) != m.NumInputs():
		return argument("got %d inputs, the method has %d", len(in), m.NumInputs())
	case len(out) > m.NumOutputs():
		return argument("got %d outputs, the method has %d", len(out), m.NumOutputs())
	}
	for i := range in {
		v := &in[i]
		var err error
		switch {
		case v.dtype != -1:
			err = m.setMemory(i, v.dtype, &v.shape[0], C.size_t(v.rank), v.data, v.bytes)
		case m.meta.Inputs[i].Kind == tensor.None:
			err = m.SetValue(i, tensor.Value{})
		}
		if err != nil {
			return err
		}
	}
	m.outputs.Unpin()
	if err := m.Execute(ctx); err != nil {
		return err
	}
	for i := range out {
		if err := m.copyOutput(i, &out[i]); err != nil {
			return err
		}
	}
	return nil
}

// copyOutput describes an output of the last run, and copies its elements where there is room for them.
func (m *method) copyOutput(i int, v *C.etrun_value) error {
	room, err := bytesOf("data of an output", v.data, v.bytes)
	if err != nil {
		return err
	}
	e, err := m.output(C.size_t(i))
	if err != nil {
		return err
	}
	n := e.bytes()
	v.kind, v.dtype, v.rank, v.copied, v.bytes = C.int32_t(e.kind), C.int32_t(e.dtype), C.int32_t(len(e.shape)), 0, C.size_t(n)
	for d, size := range e.shape {
		v.shape[d] = C.int64_t(size)
	}
	if v.data != nil && len(room) >= n {
		copy(room, e.data())
		v.copied = 1
	}
	return nil
}

// pool is the object of a pool's handle.
type pool struct {
	*etrun.Pool
	meta *etrun.MethodMeta
}

//export etrun_pool_open
func etrun_pool_open(handle C.etrun_program, name *C.char, size C.int32_t, opened *C.etrun_pool, text **C.char) C.int {
	return withProgram(handle, text, func(p *program) error {
		if opened == nil {
			return argument("pool is NULL")
		}
		*opened = 0
		if size < 1 || size > maxThreads {
			return argument("size is %d, want 1 to %d", int32(size), maxThreads)
		}
		meta, err := p.meta(name)
		if err != nil {
			return err
		}
		list, err := p.NewPool(textOf(name), int(size), etrun.WithQueue(maxItems))
		if err == nil {
			*opened = C.etrun_pool(handles.add(pools, &pool{list, meta}))
		}
		return err
	})
}

//export etrun_pool_invoke
func etrun_pool_invoke(handle C.etrun_pool, inputs *C.etrun_value, nIn C.size_t, outputs *C.etrun_value, nOut C.size_t,
	timeout C.int64_t, text **C.char) C.int {
	return call(text, func() error {
		p, err := find[*pool](C.uint64_t(handle), pools)
		if err != nil {
			return err
		}
		in, out, err := valuesOf(inputs, nIn, outputs, nOut)
		if err != nil {
			return err
		}
		return withTimeout(timeout, func(ctx context.Context) error {
			return p.Do(ctx, func(instance *etrun.Method) error {
				return newMethod(instance, p.meta).invoke(ctx, in, out)
			})
		})
	})
}

//export etrun_pool_close
func etrun_pool_close(handle C.etrun_pool, text **C.char) C.int {
	return call(text, func() error {
		p, err := remove[*pool](C.uint64_t(handle), pools)
		if err != nil {
			return err
		}
		return p.Close()
	})
}

// setMemory sets an input to elements in memory of C.
func (m *method) setMemory(i int, dtype C.int32_t, shape *C.int64_t, rank C.size_t, data unsafe.Pointer, bytes C.size_t) error {
	b, err := bytesOf("data", data, bytes)
	if err != nil {
		return err
	}
	if t := m.inputs[i].last; t != nil && C.int32_t(t.DType) == dtype && sameShape(t.Sizes, shape, rank) { // without allocations
		return m.set(i, t.DType, t.Sizes, b)
	}
	d, sizes, err := m.request(dtype, shape, rank)
	if err != nil {
		return err
	}
	return m.set(i, d, sizes, b)
}

// sameShape compares sizes with those of C.
func sameShape(sizes []int, shape *C.int64_t, rank C.size_t) bool {
	if shape == nil && rank > 0 || C.size_t(len(sizes)) != rank {
		return false
	}
	for d, n := range unsafe.Slice(shape, rank) {
		if int64(n) != int64(sizes[d]) {
			return false
		}
	}
	return true
}
