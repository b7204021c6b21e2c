package native

import (
	"fmt"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// builder defines a graph as a subgraph of the library.
type builder struct {
	lib    *xnn.Library
	sub    xnn.Subgraph
	graph  *graph.Graph
	shapes []graph.Shape // of the values
	ids    []uint32      // the library's ids of the values
	dims   [xnn.MaxDims]uint
}

// call is the result of a C function.
type call struct {
	name   string
	status xnn.Status
}

func (c call) err() error { return c.status.Error(c.name) }

// define creates the subgraph. The caller must delete it, also after an error.
func (b *builder) define() error {
	externals := uint32(len(b.graph.Args))
	if err := b.lib.CreateSubgraph(externals, 0, &b.sub).Error("xnn_create_subgraph"); err != nil {
		return err
	}
	b.ids = make([]uint32, len(b.graph.Values))
	used := graph.UsedValues(b.graph)
	for v := range b.graph.Values {
		if !used[v] {
			continue
		}
		if err := b.value(v).err(); err != nil {
			return fmt.Errorf("%s: %w", b.graph.Describe(v), err)
		}
	}
	for i := range b.graph.Nodes {
		n := &b.graph.Nodes[i]
		if err := b.node(n).err(); err != nil {
			return fmt.Errorf("%s: %w", n.Location(), err)
		}
	}
	return nil
}

// node defines a node.
func (b *builder) node(n *graph.Node) call {
	if isViaFloats(b.graph, n) {
		return b.viaFloats(n)
	}
	return typeOf(n).define(b, n)
}

// viaFloats defines a node of float32, and the conversions around it.
func (b *builder) viaFloats(n *graph.Node) call {
	in, out := n.In[0], n.Out[0]
	from, to := b.ids[in], b.ids[out]
	defer func() { b.ids[in], b.ids[out] = from, to }()
	if c := b.floats(in); c.status != xnn.Success {
		return c
	}
	if c := b.convert(from, b.ids[in]); c.status != xnn.Success {
		return c
	}
	if n.Type.Tag == graph.TagConvert {
		return b.convert(b.ids[in], to)
	}
	if c := b.floats(out); c.status != xnn.Success {
		return c
	}
	if c := typeOf(n).define(b, n); c.status != xnn.Success {
		return c
	}
	return b.convert(b.ids[out], to)
}

// floats defines a value of float32 in the shape of a value of the graph, whose id becomes that.
func (b *builder) floats(v int) call {
	return b.tensor(&graph.Value{Datatype: graph.FP32}, b.shapes[v], xnn.NoValue, 0, &b.ids[v])
}

func (b *builder) convert(from, to uint32) call {
	return call{"xnn_define_unary", b.lib.DefineUnary(b.sub, b.lib.Soname.Unary[xnn.Convert], nil, from, to, 0)}
}

// value defines a value with its sizes at the declared sizes of the inputs. The sizes in the payload
// may be out of date for intermediate values.
func (b *builder) value(v int) call {
	x := &b.graph.Values[v]
	external, flags := uint32(xnn.NoValue), uint32(0)
	if x.Arg != graph.None {
		external = uint32(x.Arg)
		if x.Input {
			flags |= xnn.ValueExternalInput
		}
		if x.Output {
			flags |= xnn.ValueExternalOutput
		}
	}
	return b.tensor(x, b.shapes[v], external, flags, &b.ids[v])
}

// tensor defines a value of a shape.
func (b *builder) tensor(x *graph.Value, s graph.Shape, external, flags uint32, out *uint32) call {
	datatype := b.lib.Soname.Datatypes[x.Datatype.Info().Native]
	for i, d := range s.Dims() {
		b.dims[i] = uint(d)
	}
	dims, rank, data, q := &b.dims[0], uint(s.Rank), xnn.AddressOf(x.Data), &x.Quant
	switch x.Datatype.Info().Quant {
	case graph.PerTensor:
		return call{"xnn_define_quantized_tensor_value", b.lib.DefineQuantizedTensorValue(b.sub, datatype, q.ZeroPoint, q.Scale,
			rank, dims, data, external, flags, out)}
	case graph.PerChannel:
		return call{"xnn_define_channelwise_quantized_tensor_value_v2", b.lib.DefineChannelwiseQuantizedTensorValue(b.sub, datatype,
			q.ZeroPoint, xnn.AddressOf(q.Scales), rank, uint(q.ChannelDim), dims, data, external, flags, out)}
	case graph.PerGroup:
		return call{"xnn_define_blockwise_quantized_tensor_value", b.lib.DefineBlockwiseQuantizedTensorValue(b.sub, datatype,
			q.ZeroPoint, xnn.AddressOf(q.Blocks), rank, uint(q.ChannelDim), uint(q.GroupSize), dims, data, external, flags, out)}
	case graph.PerToken:
		return call{"xnn_define_dynamically_quantized_tensor_value", b.lib.DefineDynamicallyQuantizedTensorValue(b.sub, datatype,
			rank, uint(q.Nonbatch), dims, external, flags, out)}
	}
	return call{"xnn_define_tensor_value", b.lib.DefineTensorValue(b.sub, datatype, rank, dims, data, external, flags, out)}
}

func sizes(dims []int) []uint {
	out := make([]uint, len(dims), len(dims)+1)
	for i, d := range dims {
		out[i] = uint(d)
	}
	return out
}

// in returns the library's id of an operand, xnn.NoValue for an absent one.
func (b *builder) in(n *graph.Node, i int) uint32 {
	if n.In[i] == graph.None {
		return xnn.NoValue
	}
	return b.ids[n.In[i]]
}

func (b *builder) out(n *graph.Node, i int) uint32 { return b.ids[n.Out[i]] }

func (b *builder) unary(op xnn.UnaryOperator, params *xnn.UnaryParams, n *graph.Node) call {
	return call{"xnn_define_unary", b.lib.DefineUnary(b.sub, b.lib.Soname.Unary[op], params, b.in(n, 0), b.out(n, 0), 0)}
}

func (b *builder) binary(op xnn.BinaryOperator, params *xnn.BinaryParams, n *graph.Node) call {
	return call{"xnn_define_binary", b.lib.DefineBinary(b.sub, b.lib.Soname.Binary[op], params, b.in(n, 0), b.in(n, 1), b.out(n, 0), 0)}
}

func (b *builder) convolution(n *graph.Node) call {
	w := n.Window()
	return call{"xnn_define_convolution_2d", b.lib.DefineConvolution2D(b.sub, uint32(w.Top), uint32(w.Right), uint32(w.Bottom), uint32(w.Left),
		uint32(w.KernelH), uint32(w.KernelW), uint32(w.StrideH), uint32(w.StrideW), uint32(w.DilationH), uint32(w.DilationW),
		uint32(w.Groups), uint(w.GroupIn), uint(w.GroupOut), n.Min, n.Max,
		b.in(n, 0), b.in(n, 1), b.in(n, 2), b.out(n, 0), n.Flags)}
}

func (b *builder) depthwise(n *graph.Node) call {
	w := n.Window()
	return call{"xnn_define_depthwise_convolution_2d", b.lib.DefineDepthwiseConvolution2D(b.sub, uint32(w.Top), uint32(w.Right), uint32(w.Bottom), uint32(w.Left),
		uint32(w.KernelH), uint32(w.KernelW), uint32(w.StrideH), uint32(w.StrideW), uint32(w.DilationH), uint32(w.DilationW),
		uint32(w.GroupOut), uint(w.Groups), n.Min, n.Max,
		b.in(n, 0), b.in(n, 1), b.in(n, 2), b.out(n, 0), n.Flags)}
}

func (b *builder) deconvolution(n *graph.Node) call {
	w := n.Window()
	return call{"xnn_define_deconvolution_2d", b.lib.DefineDeconvolution2D(b.sub, uint32(w.Top), uint32(w.Right), uint32(w.Bottom), uint32(w.Left),
		uint32(w.AdjustH), uint32(w.AdjustW), uint32(w.KernelH), uint32(w.KernelW), uint32(w.StrideH), uint32(w.StrideW),
		uint32(w.DilationH), uint32(w.DilationW), uint32(w.Groups), uint(w.GroupIn), uint(w.GroupOut), n.Min, n.Max,
		b.in(n, 0), b.in(n, 1), b.in(n, 2), b.out(n, 0), n.Flags)}
}

func (b *builder) fullyConnected(n *graph.Node) call {
	if n.Flags&graph.FlagReshape2D != 0 && !b.lib.Soname.Reshape2D {
		return b.fullyConnected2D(n)
	}
	return b.product(n, b.out(n, 0), n.Flags)
}

func (b *builder) product(n *graph.Node, out, flags uint32) call {
	return call{"xnn_define_fully_connected", b.lib.DefineFullyConnected(b.sub, n.Min, n.Max,
		b.in(n, 0), b.in(n, 1), b.in(n, 2), out, flags)}
}

// fullyConnected2D defines a product whose output has two dimensions, for libraries without
// graph.FlagReshape2D. If the input has another rank, it defines a product of that rank and a reshape.
func (b *builder) fullyConnected2D(n *graph.Node) call {
	y, out, flags := b.shapes[n.In[0]], b.out(n, 0), n.Flags&^graph.FlagReshape2D
	if y.Rank == 2 {
		return b.product(n, out, flags)
	}
	var ranked uint32
	cols := b.shapes[n.Out[0]].Last()
	y.Dim[y.Rank-1] = cols
	if c := b.tensor(&b.graph.Values[n.Out[0]], y, xnn.NoValue, 0, &ranked); c.status != xnn.Success {
		return c
	}
	if c := b.product(n, ranked, flags); c.status != xnn.Success {
		return c
	}
	dims := [2]uint{0, uint(cols)} // 0: the number of rows is inferred
	return call{"xnn_define_static_reshape", b.lib.DefineStaticReshape(b.sub, 2, &dims[0], ranked, out, 0)}
}

func (b *builder) batchMatrix(n *graph.Node) call {
	return call{"xnn_define_batch_matrix_multiply", b.lib.DefineBatchMatrixMultiply(b.sub, b.in(n, 0), b.in(n, 1), b.out(n, 0), n.Flags)}
}

func (b *builder) averagePool(n *graph.Node) call {
	w := n.Window()
	return call{"xnn_define_average_pooling_2d", b.lib.DefineAveragePooling2D(b.sub, uint32(w.Top), uint32(w.Right), uint32(w.Bottom), uint32(w.Left),
		uint32(w.KernelH), uint32(w.KernelW), uint32(w.StrideH), uint32(w.StrideW), n.Min, n.Max, b.in(n, 0), b.out(n, 0), n.Flags&graph.FlagSamePadding)}
}

func (b *builder) maxPool(n *graph.Node) call {
	w := n.Window()
	return call{"xnn_define_max_pooling_2d", b.lib.DefineMaxPooling2D(b.sub, uint32(w.Top), uint32(w.Right), uint32(w.Bottom), uint32(w.Left),
		uint32(w.KernelH), uint32(w.KernelW), uint32(w.StrideH), uint32(w.StrideW), uint32(w.DilationH), uint32(w.DilationW),
		n.Min, n.Max, b.in(n, 0), b.out(n, 0), n.Flags&graph.FlagSamePadding)}
}

func (b *builder) globalPool(n *graph.Node) call {
	axes := [2]uint{1, 2}
	return call{"xnn_define_static_reduce", b.lib.DefineStaticReduce(b.sub, b.lib.Soname.Reduce[xnn.Mean], 2, &axes[0],
		b.in(n, 0), b.out(n, 0), xnn.FlagKeepDims)}
}

func (b *builder) softmax(n *graph.Node) call {
	return call{"xnn_define_softmax", b.lib.DefineSoftmax(b.sub, b.in(n, 0), b.out(n, 0), 0)}
}

func (b *builder) copy(n *graph.Node) call {
	return call{"xnn_define_copy", b.lib.DefineCopy(b.sub, b.in(n, 0), b.out(n, 0), 0)}
}

// reshape defines a reshape. The library infers a size of 0. A reshape to rank 0 becomes one to [1].
func (b *builder) reshape(n *graph.Node) call {
	dims := sizes(graph.Params[graph.ReshapeParams](n).Sizes)
	if len(dims) == 0 {
		dims = append(dims, 1)
	}
	return call{"xnn_define_static_reshape", b.lib.DefineStaticReshape(b.sub, uint(len(dims)), &dims[0], b.in(n, 0), b.out(n, 0), 0)}
}

func (b *builder) transpose(n *graph.Node) call {
	perm := sizes(graph.Params[graph.TransposeParams](n).Perm)
	return call{"xnn_define_static_transpose", b.lib.DefineStaticTranspose(b.sub, uint(len(perm)), &perm[0], b.in(n, 0), b.out(n, 0), 0)}
}

func (b *builder) slice(n *graph.Node) call {
	p := graph.Params[graph.SliceParams](n)
	offsets, lengths := sizes(p.Offsets), sizes(p.Sizes)
	return call{"xnn_define_static_slice", b.lib.DefineStaticSlice(b.sub, uint(len(offsets)), &offsets[0], &lengths[0], b.in(n, 0), b.out(n, 0), 0)}
}

func (b *builder) pad(n *graph.Node) call {
	p := graph.Params[graph.PadParams](n)
	before, after := sizes(p.Before), sizes(p.After)
	return call{"xnn_define_static_constant_pad", b.lib.DefineStaticConstantPad(b.sub, &before[0], &after[0], p.Value, b.in(n, 0), b.out(n, 0), 0)}
}

func (b *builder) resize(n *graph.Node) call {
	p := graph.Params[graph.ResizeParams](n)
	return call{"xnn_define_static_resize_bilinear_2d", b.lib.DefineStaticResizeBilinear2D(b.sub, uint(p.Height), uint(p.Width),
		b.in(n, 0), b.out(n, 0), n.Flags)}
}

func (b *builder) concatenate(n *graph.Node) call {
	axis, _ := graph.Params[graph.ConcatenateParams](n).Dim(b.shapes[n.Out[0]].Rank)
	a, out := int32(axis), b.out(n, 0)
	in := func(i int) uint32 { return b.in(n, i) }
	switch len(n.In) {
	case 2:
		return call{"xnn_define_concatenate2", b.lib.DefineConcatenate2(b.sub, a, in(0), in(1), out, 0)}
	case 3:
		return call{"xnn_define_concatenate3", b.lib.DefineConcatenate3(b.sub, a, in(0), in(1), in(2), out, 0)}
	case 4:
		return call{"xnn_define_concatenate4", b.lib.DefineConcatenate4(b.sub, a, in(0), in(1), in(2), in(3), out, 0)}
	}
	return call{"xnn_define_concatenate5", b.lib.DefineConcatenate5(b.sub, a, in(0), in(1), in(2), in(3), in(4), out, 0)}
}
