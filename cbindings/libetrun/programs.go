//go:build cgo

package main

// #define ETRUN_TYPES_ONLY // cgo declares the functions, without const
// #include "etrun.h"
import "C"

import (
	"context"
	"io"
	"os"
	"sync"
	"unsafe"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/trace"
)

// program is the object of a program's handle.
type program struct {
	*etrun.Program
	strings cStrings
	events  *trace.DebugRecorder // nil without options.etdump
	metas   sync.Map             // by name: descriptions of methods, which cost a walk through all values
}

// meta describes a method of the program.
func (p *program) meta(name *C.char) (*etrun.MethodMeta, error) {
	if m, ok := p.metas.Load(textOf(name)); ok {
		return m.(*etrun.MethodMeta), nil
	}
	m, err := p.Meta(textOf(name))
	if err == nil {
		p.metas.Store(textOf(name), m)
	}
	return m, err
}

// open opens a program from a source and returns its handle.
func open(from etrun.Source, o *C.etrun_options) (C.etrun_program, error) {
	options, events, err := optionsOf(o)
	if err != nil {
		return 0, err
	}
	p, err := etrun.OpenSource(context.Background(), from, options...)
	if err != nil {
		return 0, err
	}
	return C.etrun_program(handles.add(programs, &program{Program: p, events: events})), nil
}

//export etrun_open
func etrun_open(path *C.char, options *C.etrun_options, handle *C.etrun_program, text **C.char) C.int {
	return call(text, func() (err error) {
		if handle == nil {
			return argument("program is NULL")
		}
		*handle = 0
		if path == nil {
			return argument("path is NULL")
		}
		*handle, err = open(etrun.File(C.GoString(path)), options)
		return err
	})
}

//export etrun_open_memory
func etrun_open_memory(data unsafe.Pointer, bytes C.size_t, options *C.etrun_options, handle *C.etrun_program, text **C.char) C.int {
	return call(text, func() error {
		if handle == nil {
			return argument("program is NULL")
		}
		*handle = 0
		b, err := bytesOf("data", data, bytes)
		if err == nil {
			*handle, err = open(etrun.Bytes("memory", b), options)
		}
		return err
	})
}

//export etrun_close
func etrun_close(handle C.etrun_program, text **C.char) C.int {
	return call(text, func() error {
		p, err := remove[*program](C.uint64_t(handle), programs)
		if err != nil {
			return err
		}
		p.strings.free()
		return p.Close()
	})
}

// withProgram calls f with the program of a handle.
func withProgram(handle C.etrun_program, text **C.char, f func(p *program) error) C.int {
	return call(text, func() error {
		p, err := find[*program](C.uint64_t(handle), programs)
		if err != nil {
			return err
		}
		return f(p)
	})
}

//export etrun_method_name
func etrun_method_name(handle C.etrun_program, i C.size_t, name **C.char, text **C.char) C.int {
	return withProgram(handle, text, func(p *program) error {
		if name == nil {
			return argument("name is NULL")
		}
		*name = nil
		if names := p.MethodNames(); uint64(i) < uint64(len(names)) {
			*name = p.strings.of(names[i])
		}
		return nil
	})
}

//export etrun_warning
func etrun_warning(handle C.etrun_program, i C.size_t, warning **C.char, text **C.char) C.int {
	return withProgram(handle, text, func(p *program) error {
		if warning == nil {
			return argument("warning is NULL")
		}
		*warning = nil
		if list := p.Warnings(); uint64(i) < uint64(len(list)) {
			*warning = C.CString(list[i].Text)
		}
		return nil
	})
}

//export etrun_declared_counts
func etrun_declared_counts(handle C.etrun_program, method *C.char, inputs, outputs *C.size_t, text **C.char) C.int {
	return withProgram(handle, text, func(p *program) error {
		meta, err := p.meta(method)
		if err == nil {
			setCounts(inputs, outputs, len(meta.Inputs), len(meta.Outputs))
		}
		return err
	})
}

// setCounts writes numbers where a caller asks for them.
func setCounts(inputs, outputs *C.size_t, in, out int) {
	if inputs != nil {
		*inputs = C.size_t(in)
	}
	if outputs != nil {
		*outputs = C.size_t(out)
	}
}

//export etrun_declared_input
func etrun_declared_input(handle C.etrun_program, method *C.char, i C.size_t, info *C.etrun_info, text **C.char) C.int {
	return withProgram(handle, text, func(p *program) error {
		meta, err := p.meta(method)
		if err != nil {
			return err
		}
		return setDeclared(info, "input", meta.Inputs, i, &p.strings)
	})
}

//export etrun_declared_output
func etrun_declared_output(handle C.etrun_program, method *C.char, i C.size_t, info *C.etrun_info, text **C.char) C.int {
	return withProgram(handle, text, func(p *program) error {
		meta, err := p.meta(method)
		if err != nil {
			return err
		}
		return setDeclared(info, "output", meta.Outputs, i, &p.strings)
	})
}

//export etrun_declared_attribute
func etrun_declared_attribute(handle C.etrun_program, method *C.char, i C.size_t, info *C.etrun_info, text **C.char) C.int {
	return withProgram(handle, text, func(p *program) error {
		meta, err := p.meta(method)
		if err != nil {
			return err
		}
		if info != nil && uint64(i) >= uint64(len(meta.Attributes)) {
			*info = C.etrun_info{kind: C.int32_t(tensor.None), dtype: C.int32_t(tensor.NoDType)}
			return nil
		}
		return setDeclared(info, "attribute", meta.Attributes, i, &p.strings)
	})
}

//export etrun_write_etdump
func etrun_write_etdump(handle C.etrun_program, path, values *C.char, text **C.char) C.int {
	return withProgram(handle, text, func(p *program) error {
		switch {
		case path == nil:
			return argument("path is NULL")
		case p.events == nil:
			return argument("no ETDump: open the program with the option etdump (enable_etdump=True in Python)")
		}
		if err := writeFile(C.GoString(path), p.events.WriteETDump); err != nil {
			return err
		}
		if values == nil || p.events.MaxBytes == 0 {
			return nil
		}
		return writeFile(C.GoString(values), p.events.WriteValues)
	})
}

// writeFile creates a file with what write writes.
func writeFile(path string, write func(w io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	err = write(f)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// setDeclared writes the description of value i of a list.
func setDeclared(info *C.etrun_info, what string, list []etrun.ValueMeta, i C.size_t, s *cStrings) error {
	if info == nil {
		return argument("info is NULL")
	}
	if err := checkIndex(what, i, len(list)); err != nil {
		return err
	}
	*info = declared(&list[i], s)
	return nil
}

// checkIndex checks the index of an input or output.
func checkIndex(what string, i C.size_t, n int) error {
	if uint64(i) >= uint64(n) {
		return argument("%s %d, the method has %d", what, uint64(i), n)
	}
	return nil
}
