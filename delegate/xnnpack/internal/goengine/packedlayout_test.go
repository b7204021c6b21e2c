package goengine

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/simd"
)

// packedDigests are digests of the panels of largeFilters, by layout. Whoever changes one increases packedVersion:
// files of earlier versions of the program must not be used.
var packedDigests = map[string]string{
	"avx512 1 true": "397b3b78517e6417", "avx512 2 true": "6ab9f930a8415a23",
	"avx2 1 false": "6b0ae44e00aac837", "avx2 2 false": "6ab9f930a8415a23",
	"neon 1 false": "4356adba2cd4d02d", "neon 1 true": "7e7431abf2c422b7", "go 1 false": "6b0ae44e00aac837",
}

// TestPackedVersion checks that panels are those of this version.
func TestPackedVersion(t *testing.T) {
	h := sha256.New()
	list := largeFilters()
	for _, name := range slices.Sorted(maps.Keys(list)) {
		m, _ := openPacked(t, list[name], graph.WeightsCache{})
		h.Write(panelsOf(m))
	}
	got := hex.EncodeToString(h.Sum(nil))[:16]
	if want, known := packedDigests[simd.PackedLayout()]; !known || got != want {
		t.Errorf("%q: panels with digest %s, want %q: increase PackedVersion, and set the digest", simd.PackedLayout(), got, want)
	}
}
