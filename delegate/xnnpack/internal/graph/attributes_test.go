package graph

import (
	"fmt"
	"strings"
	"testing"
)

// TestAttributes has a node of each family of parameters, with operands of each kind of quantization.
func TestAttributes(t *testing.T) {
	g := &Graph{Values: []Value{
		0: {Datatype: FP32, Shape: ShapeOf(1, 4, 4, 2)},
		1: {Datatype: QInt8, Shape: ShapeOf(1, 4, 4, 2), Quant: Quant{Scale: 0.5, ZeroPoint: -3}},
		2: {Datatype: QCInt8, Shape: ShapeOf(2, 3), Data: make([]byte, 6), Quant: Quant{Scales: []float32{0.25, 2}}},
		3: {Datatype: QBInt4, Shape: ShapeOf(1, 4), Data: make([]byte, 2), Quant: Quant{Blocks: []uint16{0x3f80, 0x4000}, GroupSize: 2, ZeroPoint: 8}},
		4: {Datatype: QDInt8, Shape: ShapeOf(1, 4), Quant: Quant{Nonbatch: 1}},
	}}
	window := &Window{Top: 1, Right: 2, Bottom: 3, Left: 4, KernelH: 5, KernelW: 6, StrideH: 7, StrideW: 8, DilationH: 9, DilationW: 10,
		AdjustH: 11, AdjustW: 12, Groups: 13, GroupIn: 14, GroupOut: 15}
	const common = "kernel [5 6]; padding [1 2 3 4]; stride [7 8]; dilation [9 10]"
	for _, tt := range []struct {
		tag    uint8
		in     []int
		params any
		flags  uint32
		want   string
	}{
		{TagConv2d, []int{1, 2, None}, window, FlagSamePadding, common + "; groups 13; group channels [14 15]; output min -1; same padding true; " +
			"input scale 0.5; input zero point -3; filter scales 2, of the channels of dimension 0, 0.25 to 2"},
		{TagConvTranspose2d, []int{0, 0, None}, window, 0, common + "; groups 13; group channels [14 15]; output padding [11 12]; output min -1"},
		{TagMaxPooling2d, []int{0}, window, 0, common + "; output min -1"},
		{TagArgMaxPooling2d, []int{0}, window, 0, "kernel [5 6]; padding [1 2 3 4]; output min -1"},
		{TagGlobalAvgPooling2d, []int{0}, window, 0, "output min -1"},
		{TagFullyConnected, []int{4, 3, None}, nil, FlagTransposeWeights, "output min -1; transposed filter true; " +
			"input scale computed in each run; inner dimensions that share it: 1; filter scales 2, of groups of 2 elements, 1 to 2"},
		{TagStaticTranspose, []int{0}, &TransposeParams{Perm: []int{0, 2, 1}}, 0, "permutation [0 2 1]; output min -1"},
		{TagStaticReshape, []int{0}, &ReshapeParams{Sizes: []int{0, 8}}, 0, "sizes [0 8]; output min -1"},
		{TagStaticSlice, []int{0}, &SliceParams{Offsets: []int{1}, Sizes: []int{2}}, 0, "offsets [1]; sizes [2]; output min -1"},
		{TagStaticConstantPad, []int{0}, &PadParams{Before: []int{1}, After: []int{2}, Value: -Inf}, 0, "before [1]; after [2]; value -Inf; output min -1"},
		{TagResizeBilinear2D, []int{0}, &ResizeParams{Height: 3, Width: 4}, FlagAlignCorners, "sizes [3 4]; output min -1; align corners true"},
		{TagConcatenate2, []int{0, 1}, &ConcatenateParams{Axis: -1}, 0, "axis -1; output min -1; input 1 scale 0.5; input 1 zero point -3"},
		{TagLeakyReLU, []int{0}, &ScalarParams{Value: 0.25}, 0, "value 0.25; output min -1"},
	} {
		n := &Node{Type: NodeTypes[tt.tag], In: tt.in, Out: []int{0}, Params: tt.params, Flags: tt.flags, Min: -1, Max: Inf}
		var list []string
		for _, a := range g.Attributes(n) {
			list = append(list, fmt.Sprint(a.Name, " ", a.Value))
			if _, ok := a.Value.(float32); ok && a.Value.(float32)-a.Value.(float32) != 0 {
				t.Errorf("%s: %s is %v, which JSON does not have", n.Type.Name, a.Name, a.Value)
			}
		}
		if got := strings.Join(list, "; "); got != tt.want {
			t.Errorf("%s: got  %s\nwant %s", n.Type.Name, got, tt.want)
		}
	}
}
