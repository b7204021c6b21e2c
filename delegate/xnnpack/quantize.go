package xnnpack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/etrun-go/etrun/delegate"
	regions "github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/native"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/quantize"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var _ regions.Quantizer = Writer{}

// OpenFloats implements lowering.Quantizer. The payload's arguments are described. What it needs of later releases than w.Target,
// it also needs when it is quantized.
func (w Writer) OpenFloats(p *delegate.Payload, s regions.Scheme) (regions.Floats, error) {
	g, err := w.read(p)
	if err != nil {
		return nil, err
	}
	if _, err := g.Repair(); err != nil {
		return nil, err
	}
	target := max(w.Target, Target(g.Release()))
	if err := g.CheckCommon(int(target)); err != nil {
		return nil, err
	}
	inputs, args := g.Inputs, g.Args[:g.Inputs]
	kept, err := withConstants(g, p.Args)
	if err != nil {
		return nil, err
	}
	f := &floatPayload{backend: w.Backend, target: target, kept: kept, inputs: inputs, plan: quantize.New(g, s)}
	for k, v := range args {
		if x := &g.Values[v]; x.IsConst() && len(x.Data) > 0 && len(p.Args[k].Sizes) == 0 {
			f.scalars = append(f.scalars, &x.Data[0])
		}
	}
	for _, k := range kept {
		if k < len(p.Args) {
			f.specs = append(f.specs, p.Args[k])
		}
	}
	f.specs = append(f.specs, p.Args[min(inputs, len(p.Args)):]...)
	f.plan.Refuses = native.RefusesNode
	f.shapes, err = g.Declared()
	if err != nil {
		return nil, graph.InPayload(err)
	}
	return f, nil
}

// withConstants makes inputs that are constants of the program constants of the graph. It returns the other inputs.
func withConstants(g *graph.Graph, args []*delegate.ArgSpec) (kept []int, err error) {
	list := g.Args
	g.Args = nil
	for k, v := range list {
		x := &g.Values[v]
		if k < g.Inputs && x.Datatype == graph.FP32 && isFloatConstant(args, k) {
			if n := x.Datatype.Bytes(x.Shape); len(args[k].Const) < n {
				return nil, graph.PayloadError("", "argument %d of %d bytes, want %d", k, len(args[k].Const), n)
			}
			x.Input, x.Arg, x.Data = false, graph.None, graph.Aligned(args[k].Const[:x.Datatype.Bytes(x.Shape)], 4)
			continue
		}
		if k < g.Inputs {
			kept = append(kept, k)
		}
		x.Arg = len(g.Args)
		g.Args = append(g.Args, v)
	}
	g.Inputs = len(kept)
	return kept, nil
}

// isFloatConstant reports whether an argument is a constant of the program.
func isFloatConstant(args []*delegate.ArgSpec, k int) bool {
	return k < len(args) && args[k] != nil && args[k].Const != nil && args[k].DType == tensor.Float32
}

// floatPayload is a payload that is to be quantized.
type floatPayload struct {
	backend Backend
	target  Target
	inputs  int   // of the payload
	kept    []int // those that the graph has
	specs   []*delegate.ArgSpec
	scalars []*byte // the first bytes of constants without dimensions
	plan    *quantize.Plan
	shapes  []graph.Shape
	lock    sync.Mutex // of what images record
}

// Layers implements lowering.Floats.
func (f *floatPayload) Layers() (list []regions.Layer) {
	f.lock.Lock()
	defer f.lock.Unlock()
	g := f.plan.Graph
	for i, l := range f.plan.Layers {
		n, e := &g.Nodes[l.Node], f.plan.Errors(i)
		x := regions.Layer{Node: n.Index, Type: n.Type.Name, Forms: l.Forms, Reason: l.Reason, Signal: e.Signal, Noise: e.Noise}
		if n.Type.Weighted() {
			x.Sizes, x.Products = g.Values[n.In[1]].Shape.Dims(), float64(n.Type.Cost(g, n, f.shapes))
		}
		for _, v := range [...]int{n.In[0], n.Out[0]} {
			x.Moved += float64(f.shapes[v].Numel())
		}
		list = append(list, x)
	}
	return list
}

// Divisors implements lowering.Floats.
func (f *floatPayload) Divisors(is func(arg int) bool) (inputs []int) {
	g := f.plan.Graph
	for _, k := range f.plan.Divisors(func(k int) bool { return is(f.inputs + k - g.Inputs) }) {
		inputs = append(inputs, f.kept[k])
	}
	return inputs
}

// Set implements lowering.Floats.
func (f *floatPayload) Set(o regions.Observer, corrected bool) { f.plan.Set(o, corrected) }

// Calibrate implements lowering.Floats.
func (f *floatPayload) Calibrate(ctx context.Context, p *delegate.Payload) (delegate.Image, error) {
	g := f.plan.Graph.Snapshot()
	g.Args = slices.Clone(g.Args)
	var observed []quantize.Pair // Layer is a value
	for _, v := range f.plan.Observed() {
		if len(g.Args) < graph.MaxArgs || g.Values[v].Arg != graph.None {
			observed = append(observed, quantize.Pair{Layer: v, Float: quantize.Show(g, v)})
		}
	}
	return f.image(ctx, p, g, func(args []*tensor.Value) {
		for _, o := range observed {
			f.plan.Observe(o.Layer, elements(args[o.Float]))
		}
	})
}

// elements are those of a tensor of floats.
func elements(v *tensor.Value) []float32 {
	return tensor.View[float32](v.Tensor.Data)[:v.Tensor.Numel()]
}

// Measure implements lowering.Floats.
func (f *floatPayload) Measure(ctx context.Context, p *delegate.Payload) (delegate.Image, error) {
	b, err := f.plan.Measuring()
	if err != nil {
		return nil, err
	}
	if b == nil {
		return f.image(ctx, p, f.plan.Graph.Snapshot(), func([]*tensor.Value) {})
	}
	return f.image(ctx, p, b.Graph, func(args []*tensor.Value) {
		for _, x := range b.Pairs {
			f.plan.Record(x, elements(args[x.Float]), elements(args[x.Quantized]))
		}
	})
}

// Try implements lowering.Floats.
func (f *floatPayload) Try(ctx context.Context, p *delegate.Payload, forms regions.Forms) (delegate.Image, error) {
	b, err := f.build(forms)
	if err != nil {
		return nil, err
	}
	g := f.plan.Graph.Snapshot()
	if b != nil {
		g = b.Graph
	}
	return f.image(ctx, p, g, func([]*tensor.Value) {})
}

// image compiles a graph with further outputs, which record passes on after each run.
func (f *floatPayload) image(ctx context.Context, p *delegate.Payload, g *graph.Graph,
	record func(args []*tensor.Value)) (delegate.Image, error) {
	g.MayRepair = false // it was, if necessary
	m, err := plan(g, nil)
	if err != nil {
		return nil, err
	}
	own := int64(0)
	for _, v := range g.Args[len(f.plan.Graph.Args):] {
		own = graph.Plus(own, int64(g.Values[v].Datatype.Bytes(m.Shapes[v])))
	}
	if err := p.Limits.Check(ID, 0, own); err != nil {
		return nil, err
	}
	m.Limits, m.ThreadCount = p.Limits, p.Threads
	img, err := f.backend.compile(ctx, m)
	if err != nil {
		return nil, err
	}
	return &recording{Image: img, f: f, inputs: len(p.Args), graph: g, shapes: m.Shapes, record: record}, nil
}

// recording is an image that passes the values of its runs on.
type recording struct {
	delegate.Image
	f      *floatPayload
	inputs int // arguments of a call
	graph  *graph.Graph
	shapes []graph.Shape
	record func([]*tensor.Value)
}

// Needs implements delegate.Image. The call has the payload's inputs.
func (r *recording) Needs() delegate.Needs {
	n := r.Image.Needs()
	n.Inputs = r.f.inputs
	return n
}

// Unit implements delegate.Image.
func (r *recording) Unit(in delegate.Instance) (delegate.Unit, error) {
	u, err := r.Image.Unit(in)
	if err != nil {
		return nil, err
	}
	w := &recorder{Unit: u, of: r}
	for _, v := range r.graph.Args[len(r.f.plan.Graph.Args):] {
		t := tensor.Make(r.graph.Values[v].Datatype.Info().Tensor, r.shapes[v].Dims(), nil, tensor.DynamicUnbound)
		t.Bind(tensor.AlignedBytes(t.NBytes()))
		w.own = append(w.own, new(tensor.TensorValue(t)))
	}
	return w, nil
}

// recorder is a unit with further outputs.
type recorder struct {
	delegate.Unit
	of  *recording
	own []*tensor.Value
}

// Execute implements delegate.Unit.
func (w *recorder) Execute(ctx context.Context, args []*tensor.Value) error {
	f := w.of.f
	if len(args) != w.of.inputs {
		return delegate.Errorf(ID, delegate.ErrArgument, "", "%d arguments, want %d", len(args), w.of.inputs)
	}
	var list []*tensor.Value
	for _, k := range f.kept {
		list = append(list, args[k])
	}
	outputs := len(f.plan.Graph.Args) - f.plan.Graph.Inputs
	list = append(append(list, args[len(args)-outputs:]...), w.own...)
	if err := w.Unit.Execute(ctx, list); err != nil {
		return err
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	w.of.record(list)
	return nil
}

// built is a quantized graph, and the same one in the common language with the constants that are its last inputs.
type built struct {
	*quantize.Built
	common    *graph.Graph
	constants []graph.Value
}

// build returns the quantized graph, nil if nothing is quantized. Convolutions stay if readers could not know the layout of an image: what
// is tried is what is written.
func (f *floatPayload) build(forms regions.Forms) (*built, error) {
	b, err := f.readable(forms)
	if !errors.Is(err, delegate.ErrUnsupported) {
		return b, err
	}
	left := make(map[int]string)
	b, err = f.readable(func(l int) regions.SchemeName {
		form := forms(l)
		if form != "" && f.plan.Graph.Nodes[f.plan.Layers[l].Node].Type.Convolution {
			form, left[l] = "", "readers would take the layout of its image for an exporter's fault"
		}
		return form
	})
	if b != nil {
		maps.Copy(b.Left, left)
	}
	return b, err
}

// readable is build with an error for such an image.
func (f *floatPayload) readable(forms regions.Forms) (*built, error) {
	b, err := f.plan.Build(forms)
	if b == nil || err != nil {
		return nil, err
	}
	g := b.Graph.Snapshot()
	for v := range g.Values {
		x := &g.Values[v]
		if x.Found = nil; x.Datatype == graph.QDInt8 { // the program may not have named data any more
			x.Shape = b.Shapes[v]
		}
	}
	constants, err := g.Common(int(f.target))
	if err != nil {
		return nil, fmt.Errorf("%w", graph.InPayload(err))
	}
	var specs []*delegate.ArgSpec
	at := min(len(f.kept), len(f.specs))
	for i := range constants {
		c := &constants[i]
		specs = append(specs, &delegate.ArgSpec{DType: c.Tensor(), Sizes: c.Shape.Dims(), Const: c.Data})
	}
	return &built{b, g, constants}, g.CheckReadable(append(append(slices.Clone(f.specs[:at]), specs...), f.specs[at:]...))
}

// Write implements lowering.Floats.
func (f *floatPayload) Write(forms regions.Forms) (*regions.Quantized, error) {
	b, err := f.build(forms)
	if b == nil || err != nil {
		return nil, err
	}
	b.common.Version = graph.Identifiers[0]
	out := written(b.common, b.constants)
	for i := range out.Constants { // a tensor of a dimension could give results one that the program's tensors do not have
		if c := &out.Constants[i]; len(c.Data) > 0 && slices.Contains(f.scalars, &c.Data[0]) {
			c.Sizes = nil
		}
	}
	return &regions.Quantized{Written: out, OldInputs: f.inputs, Inputs: f.kept, Quantized: b.Layers, Left: b.Left}, nil
}
