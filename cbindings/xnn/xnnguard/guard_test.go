//go:build cgo && !nodl && linux && (amd64 || arm64)

package xnnguard

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/internal/guard"
)

// squares writes the squares of the n floats of input to output with the library.
func squares(t *testing.T, lib *xnn.Library, n uint, input, output []byte) {
	t.Helper()
	must := func(call string, s xnn.Status) {
		t.Helper()
		if err := s.Error(call); err != nil {
			t.Fatal(err)
		}
	}
	var s xnn.Subgraph
	var ids [2]uint32
	var w xnn.Workspace
	var r xnn.Runtime
	must("xnn_create_subgraph", lib.CreateSubgraph(2, 0, &s))
	defer lib.DeleteSubgraph(s)
	for i, flag := range []uint32{xnn.ValueExternalInput, xnn.ValueExternalOutput} {
		must("xnn_define_tensor_value", lib.DefineTensorValue(s, lib.Soname.Datatypes[xnn.FP32], 1, &n, 0, uint32(i), flag, &ids[i]))
	}
	must("xnn_define_unary", lib.DefineUnary(s, lib.Soname.Unary[xnn.Square], nil, ids[0], ids[1], 0))
	must("xnn_create_workspace", lib.CreateWorkspace(&w))
	defer lib.ReleaseWorkspace(w)
	must("xnn_create_runtime_v4", lib.CreateRuntime(s, 0, w, 0, 0, &r))
	defer lib.DeleteRuntime(r)
	values := []xnn.ExternalValue{{ID: 0, Data: xnn.AddressOf(input)}, {ID: 1, Data: xnn.AddressOf(output)}}
	must("xnn_reshape_runtime", lib.ReshapeRuntime(r))
	must("xnn_setup_runtime_v2", lib.SetupRuntime(r, 2, &values[0]))
	must("xnn_invoke_runtime", lib.InvokeRuntime(r))
}

func memory(t *testing.T) *guard.Memory {
	m, err := guard.Map(1 << 12)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// offences are accesses that the guard must detect, with the signal that ends the process; "" for
// valid ones.
var offences = []struct {
	name, signal string
	underrun     bool
	run          func(t *testing.T, lib *xnn.Library)
}{
	{"first and last byte", "", false, func(_ *testing.T, _ *xnn.Library) { b := allocate(32); b.Store(31, b.Load(0)); b.Free() }},
	{"over-read", "SIGSEGV", false, func(_ *testing.T, _ *xnn.Library) { allocate(32).Load(32) }},
	{"over-write", "SIGSEGV", false, func(_ *testing.T, _ *xnn.Library) { allocate(32).Store(32, 1) }},
	{"over-read of several pages", "SIGSEGV", false, func(_ *testing.T, _ *xnn.Library) { allocate(1 << 20).Load(1 << 20) }},
	{"write into alignment padding", "SIGABRT", false, func(_ *testing.T, _ *xnn.Library) { b := allocate(33); b.Store(33, 1); b.Free() }},
	{"write in front", "SIGABRT", false, func(_ *testing.T, _ *xnn.Library) { b := allocate(32); b.Store(-1, 1); b.Free() }},
	{"under-read", "SIGSEGV", true, func(_ *testing.T, _ *xnn.Library) { allocate(32).Load(-1) }},
	{"under-write", "SIGSEGV", true, func(_ *testing.T, _ *xnn.Library) { allocate(32).Store(-1, 1) }},
	{"read of freed memory", "SIGSEGV", false, func(_ *testing.T, _ *xnn.Library) { b := allocate(32); b.Free(); b.Load(0) }},
	{"second free", "SIGABRT", false, func(_ *testing.T, _ *xnn.Library) { b := allocate(32); b.Free(); b.Free() }},
	{"buffers of a library call", "", false, func(t *testing.T, lib *xnn.Library) {
		squares(t, lib, 64, memory(t).End(256, xnn.ExtraBytes), memory(t).End(256, 0))
	}},
	{"short input of a library call", "SIGSEGV", false, func(t *testing.T, lib *xnn.Library) {
		squares(t, lib, 64, memory(t).End(252-xnn.ExtraBytes, 0), memory(t).End(256, 0))
	}},
	{"short output of a library call", "SIGSEGV", false, func(t *testing.T, lib *xnn.Library) {
		squares(t, lib, 64, memory(t).End(256, xnn.ExtraBytes), memory(t).End(252, 0))
	}},
	{"output before a guard page", "SIGSEGV", false, func(t *testing.T, lib *xnn.Library) {
		out := memory(t)
		squares(t, lib, 64, memory(t).End(256, xnn.ExtraBytes), out.Start(out.Len(), 0)[out.Len()-128:])
	}},
}

const envOffence = "ETRUN_GUARD_OFFENCE"

// TestOffences performs each access in its own process.
func TestOffences(t *testing.T) {
	lib := xnntest.Library(t)
	if err := Install(lib); err != nil {
		t.Fatal(err)
	}
	for _, o := range offences {
		if os.Getenv(envOffence) == o.name {
			Set(Options{Poison: 0x5a, Underrun: o.underrun})
			o.run(t, lib)
			return
		}
	}
	for _, o := range offences {
		cmd := exec.Command(os.Args[0], "-test.run=^TestOffences$")
		cmd.Env = append(os.Environ(), envOffence+"="+o.name)
		out, err := cmd.CombinedOutput()
		if failed := err != nil; failed != (o.signal != "") || !strings.Contains(string(out), o.signal) {
			t.Errorf("%s: got %v, want signal %q\n%.2000s", o.name, err, o.signal, out)
		}
	}
}

// TestLibrary checks the library's allocations: they are in the guarded heap, are freed, and fail
// beyond the limit.
func TestLibrary(t *testing.T) {
	lib := xnntest.Library(t)
	if err := Install(lib); err != nil {
		t.Fatal(err)
	}
	in, out := memory(t), memory(t)
	for _, underrun := range []bool{false, true} {
		Set(Options{Poison: 0xa5, Underrun: underrun})
		before := Read(true)
		for range 1000 {
			squares(t, lib, 7, in.End(28, xnn.ExtraBytes), out.End(28, 0))
		}
		after := Read(true)
		if after.Blocks != before.Blocks || after.Bytes != before.Bytes || after.Allocations < before.Allocations+5000 || after.Peak <= before.Bytes {
			t.Errorf("underrun %v: before 1000 runs %+v, after %+v", underrun, before, after)
		}
	}
	var many []block
	for range 15000 {
		many = append(many, allocate(100))
	}
	if n := Read(false).Blocks; n > 14000 {
		t.Errorf("got %d guarded blocks, want at most 14000", n)
	}
	for _, b := range many {
		b.Store(99, 1)
		b.Free()
	}
	Set(Options{Limit: 1})
	defer Set(Options{})
	var s xnn.Subgraph
	if status := lib.CreateSubgraph(2, 0, &s); status != xnn.OutOfMemory {
		t.Errorf("limit of 1 byte: got %v, want %v", status, xnn.OutOfMemory)
	}
	if n := Read(true).Refused; n == 0 {
		t.Error("no allocation was refused")
	}
}
