package xnnpack_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate/delegatetest"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// TestSuite runs the conformance suite of backends with both engines: floats, bytes, varying sizes and named data.
func TestSuite(t *testing.T) {
	for _, engine := range []xnnpack.Engine{xnnpack.EngineNative, xnnpack.EngineGo} {
		for _, path := range []string{"digits/xnnpack.pte", "pte/dynamic_pair_xnnpack.pte", "pte/named_data.pte"} {
			t.Run(string(engine)+"/"+filepath.Base(path), func(t *testing.T) {
				if engine == xnnpack.EngineNative {
					xnntest.Library(t)
				}
				program, err := os.ReadFile("../../testdata/" + path)
				if err != nil {
					t.Fatal(err)
				}
				delegatetest.Run(t, xnnpack.Backend{Engine: engine, Library: xnntest.Path()}, ptetest.Payloads(t, program, xnnpack.ID)...)
			})
		}
	}
}
