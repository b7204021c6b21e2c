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
	"avx512 1 true": "b9e81a6d83e89b19", "avx512 2 true": "705dc5bbd48a0a8a",
	"avx2 1 false": "b9e81a6d83e89b19", "avx2 2 false": "705dc5bbd48a0a8a",
	"neon 1 false": "a4c4c5c2715a6456", "neon 1 true": "f5c0035d1285fa64", "go 1 false": "b9e81a6d83e89b19",
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
