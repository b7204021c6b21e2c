package quantize

import (
	"math"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// filter is a filter of floats with one row of elements for each output channel.
type filter struct {
	shape   graph.Shape
	channel int // the dimension of channels
	rows    [][]float32
}

// rowsOf returns the filter of a node. That of a fully connected node becomes [output, input channels].
func rowsOf(n *graph.Node, x *graph.Value) *filter {
	w := tensor.View[float32](x.Data)[:x.Shape.Numel()]
	f := &filter{shape: x.Shape}
	switch {
	case n.Type.Tag == graph.TagDepthwiseConv2d:
		f.channel = 3
	case n.Type.Tag == graph.TagFullyConnected && n.Flags&graph.FlagTransposeWeights != 0:
		f.shape = graph.ShapeOf(x.Shape.Dim[1], x.Shape.Dim[0])
		f.rows = columns(w, x.Shape.Dim[1])
		return f
	}
	if f.channel == 3 {
		f.rows = columns(w, x.Shape.Dim[3])
		return f
	}
	size := x.Shape.Trailing(1)
	for i := range x.Shape.Dim[0] {
		f.rows = append(f.rows, w[i*size:][:size])
	}
	return f
}

// columns returns the columns of a matrix with n of them.
func columns(w []float32, n int) [][]float32 {
	all, rows := make([]float32, len(w)), make([][]float32, n)
	size := len(w) / n
	for k := range rows {
		rows[k] = all[k*size:][:size]
		for i := range size {
			rows[k][i] = w[i*n+k]
		}
	}
	return rows
}

// finite reports whether all weights are numbers.
func (f *filter) finite() bool {
	for _, row := range f.rows {
		for _, x := range row {
			if x-x != 0 {
				return false
			}
		}
	}
	return true
}

// most returns the largest magnitude of a list.
func most(list []float32) (m float32) {
	for _, x := range list {
		m = max(m, x, -x)
	}
	return m
}

// least is the smallest scale of weights: the library's kernels need normal numbers, also in products of scales.
const least = 0x1p-40

// perChannel quantizes a filter to -127 to 127, with a scale for each channel that is not below its floor.
func (f *filter) perChannel(floors []float32) graph.Value {
	x := graph.Value{Datatype: graph.QCInt8, Shape: f.shape, Arg: graph.None, Data: tensor.AlignedBytes(f.shape.Numel())}
	x.Quant.ChannelDim = f.channel
	step, start := 1, len(f.rows[0])
	if f.channel == 3 {
		step, start = len(f.rows), 1
	}
	for k, row := range f.rows {
		scale := max(most(row)/127, least)
		if floors != nil {
			scale = max(scale, floors[k])
		}
		x.Quant.Scales = append(x.Quant.Scales, scale)
		for i, w := range row {
			q := math.RoundToEven(float64(w / scale))
			x.Data[k*start+i*step] = byte(int8(min(max(q, -127), 127)))
		}
	}
	return x
}

// perGroup quantizes a filter to -8 to 7, with a scale for each channel and group of input channels.
func (f *filter) perGroup(size int) graph.Value {
	cols := f.shape.Dim[1]
	x := graph.Value{Datatype: graph.QBInt4, Shape: f.shape, Arg: graph.None}
	x.Data = tensor.AlignedBytes(x.Datatype.Bytes(f.shape))
	x.Quant = graph.Quant{GroupSize: size, ZeroPoint: 8}
	for k, row := range f.rows {
		to := x.Data[k*cols/2:][:cols/2]
		for at := 0; at < cols; at += size {
			group := row[at : at+size]
			bits := groupScale(group)
			x.Quant.Blocks = append(x.Quant.Blocks, bits)
			for i, w := range group {
				to[(at+i)/2] |= byte(code4(w, numberOf(bits))+8) << (4 * uint(i%2)) // the first one in the lower half
			}
		}
	}
	return x
}

// numberOf returns a bfloat16 number.
func numberOf(bits uint16) float32 { return math.Float32frombits(uint32(bits) << 16) }

func code4(w, scale float32) int {
	return int(min(max(math.RoundToEven(float64(w/scale)), -8), 7))
}

// shrunk are the scales that are tried for a group, relative to the one at which no element is cut off by more than
// half a step.
var shrunk = []float32{1, 0.95, 0.9, 0.85, 0.8, 1.05}

// groupScale returns the bfloat16 scale of a group with the least squared error. The errors are those with the rounded scale.
func groupScale(group []float32) (bits uint16) {
	full, lowest := most(group)/7.5, math.Inf(1)
	for _, share := range shrunk {
		b := graph.ToBF16(max(full*share, least))
		scale, sum := numberOf(b), 0.0
		for _, w := range group {
			d := float64(w) - float64(code4(w, scale))*float64(scale)
			sum += d * d
		}
		if sum < lowest {
			bits, lowest = b, sum
		}
	}
	return bits
}

// bias32 quantizes a bias to the scales of the sums.
func bias32(list []float32, in float32, scales []float32) graph.Value {
	x := graph.Value{Datatype: graph.QCInt32, Shape: graph.ShapeOf(len(list)), Arg: graph.None, Data: tensor.AlignedBytes(4 * len(list))}
	for i, b := range list {
		scale := in * scales[i]
		x.Quant.Scales = append(x.Quant.Scales, scale)
		q := math.RoundToEven(float64(b / scale))
		tensor.View[int32](x.Data)[i] = int32(min(max(q, math.MinInt32), math.MaxInt32))
	}
	return x
}

// largestBias is the largest bias in steps of the sums: it leaves room for the products.
const largestBias = 1 << 29

// biasFloors returns, for each channel, the smallest scale of weights at which the bias is not too many steps.
func biasFloors(list []float32, in float32) []float32 {
	floors := make([]float32, len(list))
	for i, b := range list {
		floors[i] = max(b, -b) / largestBias / in
	}
	return floors
}
