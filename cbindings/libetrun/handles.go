//go:build cgo

package main

// #include <stdlib.h>
// #define ETRUN_TYPES_ONLY // cgo declares the functions, without const
// #include "etrun.h"
import "C"

import (
	"fmt"
	"sync"
	"unsafe"
)

// kind is what a handle stands for. It is in the handle's lowest bits.
type kind uint64

const (
	programs kind = 1 + iota
	methods
	texts
	pools
	embedders
	speeches
)

const kindBits = 3

func (k kind) String() string {
	if int(k) >= len(kindNames) {
		k = 0
	}
	return kindNames[k]
}

var kindNames = [...]string{"unknown", "program", "method", "text", "pool", "embedder", "model of speech"}

// table holds the objects of the open handles. Numbers of closed ones are never reused.
type table struct {
	mu   sync.RWMutex
	last uint64
	open map[uint64]any
}

var handles = table{open: make(map[uint64]any)}

// add returns the handle of a new object.
func (t *table) add(k kind, object any) C.uint64_t {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	number := t.last<<kindBits | uint64(k)
	t.open[number] = object
	return C.uint64_t(number)
}

// missing describes a number that is not an open handle of a kind. The caller holds the lock.
func (t *table) missing(number uint64, want kind) error {
	got := kind(number & (1<<kindBits - 1))
	switch {
	case number == 0:
		return &fault{errHandle, fmt.Sprintf("the handle of a %v is 0", want)}
	case got == 0 || number>>kindBits == 0 || number>>kindBits > t.last:
		return &fault{errHandle, fmt.Sprintf("%d is not a handle", number)}
	case got != want:
		return &fault{errHandle, fmt.Sprintf("%d is the handle of a %v, want that of a %v", number, got, want)}
	}
	return &fault{errHandle, fmt.Sprintf("the %v of handle %d is closed", want, number)}
}

// find returns the object of a handle.
func find[T any](number C.uint64_t, want kind) (object T, err error) {
	handles.mu.RLock()
	defer handles.mu.RUnlock()
	object, ok := handles.open[uint64(number)].(T)
	if !ok {
		err = handles.missing(uint64(number), want)
	}
	return object, err
}

// remove closes a handle; of several concurrent calls one succeeds.
func remove[T any](number C.uint64_t, want kind) (object T, err error) {
	handles.mu.Lock()
	defer handles.mu.Unlock()
	object, ok := handles.open[uint64(number)].(T)
	if !ok {
		return object, handles.missing(uint64(number), want)
	}
	delete(handles.open, uint64(number))
	return object, nil
}

// cStrings are strings of C that belong to a handle.
type cStrings struct {
	mu   sync.Mutex
	list map[string]*C.char
}

// of returns a string, which is valid until free.
func (s *cStrings) of(text string) *C.char {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.list == nil {
		s.list = make(map[string]*C.char)
	}
	if s.list[text] == nil {
		s.list[text] = C.CString(text)
	}
	return s.list[text]
}

func (s *cStrings) free() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range s.list {
		C.free(unsafe.Pointer(text))
	}
	s.list = nil
}
