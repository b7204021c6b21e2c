//go:build cgo

package main

// #define ETRUN_TYPES_ONLY // cgo declares the functions, without const
// #include "etrun.h"
import "C"

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/delegate/ethosu"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/runtime/trace"
)

// Limits of sizes from callers: a slice cannot have more bytes than fit into the address space.
const (
	maxBytes   = 1 << 46
	maxItems   = 1 << 24
	maxThreads = 1024
	maxEvents  = 1 << 20 // of an ETDump
)

// bytesOf returns the memory of a caller.
func bytesOf(name string, data unsafe.Pointer, bytes C.size_t) ([]byte, error) {
	switch {
	case bytes > maxBytes:
		return nil, argument("%s: %d bytes, at most %d", name, uint64(bytes), int64(maxBytes))
	case data == nil && bytes > 0:
		return nil, argument("%s is NULL, with %d bytes", name, uint64(bytes))
	}
	return unsafe.Slice((*byte)(data), bytes), nil
}

// listOf returns a list of a caller.
func listOf[T any](name string, list *T, n C.size_t) ([]T, error) {
	switch {
	case n > maxItems:
		return nil, argument("%s: %d items, at most %d", name, uint64(n), maxItems)
	case list == nil && n > 0:
		return nil, argument("%s is NULL, with %d items", name, uint64(n))
	}
	return unsafe.Slice(list, n), nil
}

// stringsOf returns a list of strings of a caller.
func stringsOf(name string, list **C.char, n C.size_t) (texts []string, err error) {
	items, err := listOf(name, list, n)
	if err != nil {
		return nil, err
	}
	for k, item := range items {
		if item == nil {
			return nil, argument("%s[%d] is NULL", name, k)
		}
		texts = append(texts, C.GoString(item))
	}
	return texts, nil
}

// textOf returns a string of a caller, empty for NULL.
func textOf(text *C.char) string {
	if text == nil {
		return ""
	}
	return C.GoString(text)
}

// choice returns a string of a caller that must be one of a list, or NULL for the first.
func choice(name string, text *C.char, list ...string) (string, error) {
	got := list[0]
	if text != nil {
		got = C.GoString(text)
	}
	if !slices.Contains(list, got) {
		return "", argument("options.%s: got %.100q, want one of %q", name, got, list)
	}
	return got, nil
}

// checkReserved rejects options of later headers.
func checkReserved(reserved []C.uint64_t) error {
	for k, n := range reserved {
		if n != 0 {
			return argument("options.reserved[%d] is %d, want 0", k, uint64(n))
		}
	}
	return nil
}

// lowerings are the modes of lowering, the default first.
var lowerings = []string{string(etrun.LowerAuto), string(etrun.LowerOff), string(etrun.LowerRewrite), string(etrun.LowerAll)}

// optionsOf converts the options of a program.
func optionsOf(o *C.etrun_options) (options []etrun.Option, events *trace.DebugRecorder, err error) {
	if o == nil {
		o = new(C.etrun_options)
	}
	if err := checkOptions(o); err != nil {
		return nil, nil, err
	}
	lowering, err := choice("lowering", o.lowering, lowerings...)
	if err != nil {
		return nil, nil, err
	}
	repair, err := choice("repair", o.repair, "auto", "off")
	if err != nil {
		return nil, nil, err
	}
	backends, err := backendsOf(o)
	if err != nil {
		return nil, nil, err
	}
	data, err := dataOf(o)
	if err != nil {
		return nil, nil, err
	}
	options = []etrun.Option{
		etrun.WithDelegates(backends...), etrun.WithData(data...), etrun.WithThreads(int(o.threads)),
		etrun.WithMaxMemory(int64(o.max_memory)), etrun.WithSeed(uint64(o.seed)),
		etrun.WithLowering(etrun.Lowering(lowering)),
	}
	if o._map != 0 {
		options = append(options, etrun.WithMmap())
	}
	if repair == "off" {
		options = append(options, etrun.WithoutRepair())
	}
	if o.etdump != 0 {
		events = &trace.DebugRecorder{MaxBytes: int64(o.debug_buffer)}
		events.Max = maxEvents
	}
	return append(options, observing(events)...), events, nil
}

// observing returns the options of a program whose events are recorded. Values are those of the file's instructions.
func observing(events *trace.DebugRecorder) []etrun.Option {
	switch {
	case events == nil:
		return nil
	case events.MaxBytes == 0:
		return []etrun.Option{etrun.WithObserver(&events.Recorder)}
	}
	return []etrun.Option{etrun.WithObserver(events), etrun.WithLowering(etrun.LowerOff)}
}

// checkOptions checks the numbers of options.
func checkOptions(o *C.etrun_options) error {
	switch {
	case o.threads < 0 || o.threads > maxThreads:
		return argument("options.threads is %d, want 0 to %d", int32(o.threads), maxThreads)
	case o.max_memory < 0:
		return argument("options.max_memory is %d, want 0 or more", int64(o.max_memory))
	case o.debug_buffer < 0:
		return argument("options.debug_buffer is %d, want 0 or more", int64(o.debug_buffer))
	case o.etdump != 0 && o.etdump != 1:
		return argument("options.etdump is %d, want 0 or 1", int32(o.etdump))
	case o.reserved_1 != 0:
		return argument("options.reserved_1 is %d, want 0", int32(o.reserved_1))
	case o._map != 0 && o._map != 1:
		return argument("options.map is %d, want 0 or 1", int32(o._map))
	}
	return checkReserved(o.reserved[:])
}

// dataOf returns the files of external weights.
func dataOf(o *C.etrun_options) (sources []etrun.Source, err error) {
	paths, err := stringsOf("options.data_files", o.data_files, o.n_data_files)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		sources = append(sources, etrun.File(path))
	}
	blocks, err := listOf("options.data_bytes", o.data_bytes, o.n_data_bytes)
	if err != nil {
		return nil, err
	}
	for k, b := range blocks {
		name := fmt.Sprintf("options.data_bytes[%d]", k)
		data, err := bytesOf(name, b.data, b.bytes)
		if err != nil {
			return nil, err
		}
		sources = append(sources, etrun.Bytes(name, data))
	}
	return sources, nil
}

// backendsOf returns the allowed backends, configured.
func backendsOf(o *C.etrun_options) (list []delegate.Backend, err error) {
	engines := make([]string, len(xnnpack.Engines))
	for k, e := range xnnpack.Engines {
		engines[k] = string(e)
	}
	engine, err := choice("xnnpack", o.xnnpack, engines...)
	if err != nil {
		return nil, err
	}
	x := xnnpack.Backend{Library: textOf(o.xnnpack_library), WeightsCache: textOf(o.weights_cache)}
	x.MapWeights = o._map != 0 && x.WeightsCache != ""
	x.Values = o.etdump != 0 && o.debug_buffer > 0
	if engine != engines[0] {
		x.Engine = xnnpack.Engine(engine)
	}
	all := append(all.Backends(), x, ethosu.Backend{Device: textOf(o.device)}) // the later one of an ID replaces the earlier one
	if o.delegates == nil {
		return all, nil
	}
	return allowed(all, C.GoString(o.delegates))
}

// allowed returns the backends whose IDs are in a list.
func allowed(all []delegate.Backend, list string) (some []delegate.Backend, err error) {
	for id := range strings.SplitSeq(list, ",") {
		found := false
		for _, b := range all {
			if b.ID() == id {
				some, found = append(some, b), true
			}
		}
		if !found && id != "" {
			return nil, argument("options.delegates: no backend %.100q; etrun_backend_name lists them", id)
		}
	}
	return some, nil
}
