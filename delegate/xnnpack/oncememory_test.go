//go:build linux

package xnnpack

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/hal/cpu"
)

// anonymousBytes returns the size of the process's memory that is not of files.
func anonymousBytes(t *testing.T) (n int64) {
	t.Helper()
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "RssAnon:")
	if _, err := fmt.Sscan(rest, &n); err != nil {
		t.Skipf("the kernel does not report anonymous memory: %v", err)
	}
	return n << 10
}

// TestWeightsInMemoryOnce checks that packing a filter and the first run need no more memory than the released filter had, for each
// width, and with a mapped weights file much less.
func TestWeightsInMemoryOnce(t *testing.T) {
	if graphtest.RaceDetector {
		t.Skip("the race detector needs memory for each page that is touched first")
	}
	for name, types := range map[string][2]graph.Datatype{
		"floats": {graph.FP32, graph.FP32}, "bytes": {graph.QDInt8, graph.QCInt8}, "4 bits": {graph.QDInt8, graph.QCInt4},
	} {
		t.Run(name, func(t *testing.T) {
			const size = 3072
			m := graphtest.NewMaker(5)
			x, y := m.Input(graph.FP32, 1, size), m.Value(graph.FP32, 1, size)
			if types[0] == graph.QDInt8 {
				x = m.Quantized(x, 1)
			}
			filter := m.Constant(types[1], 0, size, size)
			m.Node("FullyConnected", []int{x, filter, graph.None}, []int{y})
			g := m.Done(y)
			weights, payload := int64(len(g.Values[filter].Data)), graphtest.Encode(g)
			args, c := graphtest.ArgSpecs(g, false), Backend{Engine: EngineGo, WeightsCache: t.TempDir(), MapWeights: true}
			packed := grownBy(t, Backend{Engine: EngineGo}, payload, args)
			grownBy(t, c, payload, args)
			mapped := grownBy(t, c, payload, args)
			t.Logf("%d bytes of weights: %d more when packed, %d when mapped", weights, packed, mapped)
			if packed > weights/3 {
				t.Errorf("a filter of %d bytes needs %d more once it is packed", weights, packed)
			}
			if mapped > -weights/2 {
				t.Errorf("a filter of %d bytes needs %d more once it is mapped, want that it is released", weights, mapped)
			}
		})
	}
}

// grownBy returns by how much the anonymous memory grows while a payload is compiled and runs, less what is released.
func grownBy(t *testing.T, b Backend, payload []byte, args []*delegate.ArgSpec) int64 {
	t.Helper()
	p := &delegate.Payload{Data: append([]byte(nil), payload...), Args: args,
		Release: func(b []byte) bool { cpu.Discard(b); return true }}
	debug.FreeOSMemory()
	before := anonymousBytes(t)
	img, err := b.Compile(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	u, err := img.Unit(delegate.Instance{})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	mustExecute(t, u, graphtest.NewMaker(1).Arguments(img.(*image).Graph))
	return anonymousBytes(t) - before
}
