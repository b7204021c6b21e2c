//go:build cgo

package main

// #include <stdlib.h>
// #define ETRUN_TYPES_ONLY // cgo declares the functions, without const
// #include "etrun.h"
import "C"

import (
	"unsafe"

	"github.com/etrun-go/etrun/text"
)

// finishes are the reasons why a text ended. A cancelled one is an error.
var finishes = map[text.Finish]C.int32_t{
	text.FinishStop: C.ETRUN_FINISH_STOP, text.FinishLength: C.ETRUN_FINISH_LENGTH, text.FinishContext: C.ETRUN_FINISH_CONTEXT,
}

// pieceMemory is the memory of a piece, valid until the next call.
type pieceMemory struct{ text, tokens, logProbs block }

// block is memory of C.
type block struct {
	data unsafe.Pointer
	size int
}

// resize returns memory for n items of a type; their contents are undefined.
func resize[T any](b *block, n int) []T {
	var item T
	if bytes := n * int(unsafe.Sizeof(item)); bytes > b.size {
		b.free()
		b.data, b.size = C.malloc(C.size_t(bytes)), bytes
	}
	return unsafe.Slice((*T)(b.data), n)
}

func (b *block) free() {
	C.free(b.data)
	*b = block{}
}

func (m *pieceMemory) free() {
	m.text.free()
	m.tokens.free()
	m.logProbs.free()
}

// fill copies a piece. Logarithms are left out unless the caller asked for them.
func (m *pieceMemory) fill(p *text.Piece, logProbs bool) C.etrun_piece {
	characters := resize[byte](&m.text, len(p.Text)+1)
	characters[copy(characters, p.Text)] = 0
	ids, logs := resize[C.int32_t](&m.tokens, len(p.Tokens)), resize[C.float](&m.logProbs, len(p.Tokens))
	for k, t := range p.Tokens {
		ids[k], logs[k] = C.int32_t(t.ID), C.float(t.LogProb)
	}
	piece := C.etrun_piece{
		text: (*C.char)(m.text.data), bytes: C.size_t(len(p.Text)),
		tokens: (*C.int32_t)(m.tokens.data), n_tokens: C.size_t(len(p.Tokens)),
		finish:        finishes[p.Finish],
		prompt_tokens: C.uint64_t(p.Stats.Prompt), reused_tokens: C.uint64_t(p.Stats.Reused), generated_tokens: C.uint64_t(p.Stats.Generated),
		prefill_seconds: C.double(p.Stats.Prefill.Seconds()), decode_seconds: C.double(p.Stats.Decode.Seconds()),
	}
	if logProbs {
		piece.log_probs = (*C.float)(m.logProbs.data)
	}
	return piece
}
