//go:build unix

package native

import (
	"strings"
	"testing"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// FuzzWeightsFile checks that parseWeights returns an error or non-empty entries.
func FuzzWeightsFile(f *testing.F) {
	f.Add([]byte(weightsMagic+"\x00\x00\x00\x00\x01\x00\x00\x00"+strings.Repeat("\x00", 200)), true)
	g := graphtest.ConvolutionGraph()
	f.Fuzz(func(t *testing.T, data []byte, sum bool) {
		if len(data) < weightsHeader {
			return
		}
		if sum {
			sealWeights(data)
		}
		entries, err := parseWeights(data, g)
		for _, e := range entries {
			if err == nil && len(e.Data) == 0 {
				t.Fatal("empty entry")
			}
		}
	})
}
