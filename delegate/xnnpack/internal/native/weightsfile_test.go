//go:build unix

package native_test

import (
	"strings"
	"testing"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/native"
)

// FuzzWeightsFile checks that native.ParseWeights returns an error or non-empty entries.
func FuzzWeightsFile(f *testing.F) {
	f.Add([]byte(native.WeightsMagic+"\x00\x00\x00\x00\x01\x00\x00\x00"+strings.Repeat("\x00", 200)), true)
	g := graphtest.ConvolutionGraph()
	f.Fuzz(func(t *testing.T, data []byte, sum bool) {
		if len(data) < native.WeightsHeader {
			return
		}
		if sum {
			native.SealWeights(data)
		}
		entries, err := native.ParseWeights(data, g)
		for _, e := range entries {
			if err == nil && len(e.Data) == 0 {
				t.Fatal("empty entry")
			}
		}
	})
}
