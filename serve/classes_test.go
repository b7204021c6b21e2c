package serve

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/serve/oip"
)

// classCases are outputs and the texts of their largest elements.
var classCases = map[oip.Datatype]struct {
	data []byte
	want string
}{
	"UINT8":  {tensor.BytesOf([]uint8{1, 255, 3, 2}), "255:1 3:2 2:3"},
	"UINT16": {tensor.BytesOf([]uint16{1, math.MaxUint16, 3, 2}), "65535:1 3:2 2:3"},
	"UINT32": {tensor.BytesOf([]uint32{1, math.MaxUint32, 3, 2}), "4294967295:1 3:2 2:3"},
	"UINT64": {tensor.BytesOf([]uint64{math.MaxUint64 - 1, 0, math.MaxUint64, 1 << 53}),
		"18446744073709551615:2 18446744073709551614:0 9007199254740992:3"},
	"INT8":  {tensor.BytesOf([]int8{-128, 127, 0, 0}), "127:1 0:2 0:3"},
	"INT16": {tensor.BytesOf([]int16{-5, -4, -3, -6}), "-3:2 -4:1 -5:0"},
	"INT32": {tensor.BytesOf([]int32{math.MinInt32, 1, 0, 2}), "2:3 1:1 0:2"},
	"INT64": {tensor.BytesOf([]int64{1<<53 + 1, 1 << 53, math.MaxInt64, math.MaxInt64 - 1}),
		"9223372036854775807:2 9223372036854775806:3 9007199254740993:0"},
	"FP16": {tensor.BytesOf([]uint16{0x3c00, 0xc000, 0x7bff, 0}), "65504.000000:2 1.000000:0 0.000000:3"},
	"BF16": {tensor.BytesOf([]uint16{0x3f80, 0xc000, 0x4049, 0}), "3.140625:2 1.000000:0 0.000000:3"},
	"FP32": {tensor.BytesOf([]float32{0.5, -1, float32(math.NaN()), 0.25}), "0.500000:0 0.250000:3 -1.000000:1"},
	"FP64": {tensor.BytesOf([]float64{1e300, -1, 0.5, math.Inf(1)}), fmt.Sprintf("+Inf:3 %f:0 0.500000:2", 1e300)},
}

// TestLargest checks the largest elements of every datatype: integers are exact, and the memory of their texts is counted before.
func TestLargest(t *testing.T) {
	for name, c := range classCases {
		data := tensor.AlignedBytes(len(c.data))
		copy(data, c.data)
		o := oip.Tensor{Name: "x", Datatype: name, Shape: []int{4}, Data: data}
		counted := classBytes(&o, 3)
		one := &call{wanted: []wanted{{classes: 3}}, outputs: []oip.Tensor{o}}
		if err := one.classify(); err != nil {
			t.Fatal(name, err)
		}
		var texts []string
		size := int64(0)
		for _, text := range one.outputs[0].Texts {
			texts = append(texts, string(text))
			size += int64(24 + cap(text) + len(text) + len(`"",`))
		}
		want := strings.Split(c.want, " ")
		if !slices.Equal(texts, want) {
			t.Errorf("%s: %q, want %q", name, texts, want)
		}
		if counted < size {
			t.Errorf("%s: %d bytes counted, the texts take %d", name, counted, size)
		}
	}
}
