package goengine_test

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/internal/simd"
)

// packedDigests are digests of the panels of graphtest.LargeFilters, by layout. Whoever changes one increases goengine.PackedVersion:
// files of earlier versions of the program must not be used.
var packedDigests = map[string]string{
	"avx512 1 true": "95c2cef8acba2878", "avx512 2 true": "d8b036af7e7cbb63",
	"avx2 1 false": "a5b6dd8d36478547", "avx2 2 false": "d8b036af7e7cbb63",
	"neon 1 false": "d49bef09b5256643", "neon 1 true": "6c5359ef66382dc6", "go 1 false": "a5b6dd8d36478547",
}

// TestPackedVersion checks that panels are those of this version.
func TestPackedVersion(t *testing.T) {
	h := sha256.New()
	list := graphtest.LargeFilters()
	for _, name := range slices.Sorted(maps.Keys(list)) {
		m, _ := openPacked(t, list[name], graph.WeightsCache{})
		h.Write(goengine.Panels(m))
	}
	got := hex.EncodeToString(h.Sum(nil))[:16]
	if want, known := packedDigests[simd.PackedLayout()]; !known || got != want {
		t.Errorf("%q: panels with digest %s, want %q: increase PackedVersion, and set the digest", simd.PackedLayout(), got, want)
	}
}
