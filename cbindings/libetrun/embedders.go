//go:build cgo

package main

// #define ETRUN_TYPES_ONLY // cgo declares the functions, without const
// #include "etrun.h"
import "C"

import (
	"context"
	"unsafe"

	"github.com/etrun-go/etrun/text"
)

//export etrun_embedder_open
func etrun_embedder_open(handle C.etrun_program, o *C.etrun_embedder_options, opened *C.etrun_embedder, length *C.size_t,
	message **C.char) C.int {
	return withProgram(handle, message, func(p *program) error {
		if opened == nil {
			return argument("embedder is NULL")
		}
		*opened = 0
		if o == nil {
			o = new(C.etrun_embedder_options)
		}
		if err := checkReserved(o.reserved[:]); err != nil {
			return err
		}
		tok, err := tokenizerOf(o.tokenizer, o.tokenizer_data)
		if err != nil {
			return err
		}
		if tok == nil {
			return argument("options: an embedder needs tokenizer or tokenizer_data")
		}
		e, err := text.LoadEmbedder(context.Background(), p.Program, tok, text.EmbedOptions{Method: textOf(o.method),
			Pooling: text.Pooling(textOf(o.pooling)), Normalize: o.normalize != 0, Context: int(o.context), Prompt: textOf(o.prompt)})
		if err != nil {
			return err
		}
		if length != nil {
			*length = C.size_t(e.Info().Dimensions)
		}
		*opened = C.etrun_embedder(handles.add(embedders, e))
		return nil
	})
}

//export etrun_embed
func etrun_embed(handle C.etrun_embedder, list *C.etrun_bytes, n C.size_t, vectors *C.float, bytes C.size_t, message **C.char) C.int {
	return call(message, func() error {
		e, err := find[*text.Embedder](C.uint64_t(handle), embedders)
		if err != nil {
			return err
		}
		items, err := listOf("texts", list, n)
		if err != nil {
			return err
		}
		room, err := bytesOf("vectors", unsafe.Pointer(vectors), bytes)
		if err != nil {
			return err
		}
		length := e.Info().Dimensions
		if want := len(items) * length * 4; len(room) != want {
			return argument("vectors: got memory of %d bytes, want %d for %d vectors of %d floats", len(room), want, len(items), length)
		}
		texts := make([]string, len(items))
		for k, item := range items {
			b, err := bytesOf("data of a text", item.data, item.bytes)
			if err != nil {
				return err
			}
			texts[k] = string(b)
		}
		found, err := e.Embed(context.Background(), texts...)
		if err != nil {
			return err
		}
		for k, v := range found {
			copy(unsafe.Slice((*float32)(unsafe.Pointer(vectors)), len(room)/4)[k*length:], v)
		}
		return nil
	})
}

//export etrun_embedder_close
func etrun_embedder_close(handle C.etrun_embedder, message **C.char) C.int {
	return call(message, func() error {
		e, err := remove[*text.Embedder](C.uint64_t(handle), embedders)
		if err != nil {
			return err
		}
		return e.Close()
	})
}
