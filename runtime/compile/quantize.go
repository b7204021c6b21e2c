package compile

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/tree"
)

// QuantizeOptions are the options of [OpenQuantization].
type QuantizeOptions struct {
	By      lowering.Quantizer
	Scheme  lowering.Scheme
	Named   func(key string) ([]byte, bool) // as of [Options]
	Methods []string                        // whose payloads are quantized, nil for all
}

// Layer is a node of a payload that is quantized, or could be.
type Layer struct {
	Method   string
	Delegate int
	lowering.Layer
}

// Name identifies the layer in the program: METHOD:DELEGATE:NODE:TYPE.
func (l *Layer) Name() string {
	return fmt.Sprintf("%s:%d:%d:%s", l.Method, l.Delegate, l.Node, l.Type)
}

// Quantization is a program whose payloads of floats are to be quantized.
type Quantization struct {
	w        *writer
	by       lowering.Quantizer
	payloads map[at]lowering.Floats
	order    []at
	Refused  []string // payloads that cannot be quantized, and why
}

// at is a delegate of a method.
type at struct{ method, delegate int }

// OpenQuantization reads a program with payloads of floats, as [Lower] and exporters write them. It keeps data.
func OpenQuantization(data []byte, o QuantizeOptions) (*Quantization, error) {
	w, err := newWriter(data, &Options{Named: o.Named})
	if err != nil {
		return nil, err
	}
	q := &Quantization{w: w, by: o.By, payloads: make(map[at]lowering.Floats)}
	for i := range w.spec.Methods {
		m := &w.spec.Methods[i]
		if m.Err != nil || o.Methods != nil && !slices.Contains(o.Methods, m.Name) {
			continue
		}
		specs := w.argSpecs(m)
		for d := range m.Delegates {
			if m.Delegates[d].ID != o.By.ID() || specs[d] == nil {
				continue
			}
			f, err := o.By.OpenFloats(w.payloadOf(m, d, specs[d]), o.Scheme)
			if err != nil {
				q.Refused = append(q.Refused, fmt.Sprintf("%s:%d: %v", m.Name, d, err))
				continue
			}
			q.payloads[at{i, d}] = f
			q.order = append(q.order, at{i, d})
		}
	}
	return q, nil
}

func (w *writer) payloadOf(m *pte.Method, d int, args []*delegate.ArgSpec) *delegate.Payload {
	p := &delegate.Payload{Method: m.Name, Index: d, Data: m.Delegates[d].Data, Named: &data{w.options.Named, w.spec.Named}, Args: args}
	for _, s := range m.Delegates[d].Specs {
		p.Specs = append(p.Specs, delegate.CompileSpec{Key: s.Key, Value: s.Value})
	}
	return p
}

// argSpecs describes the arguments of the delegates of a method. An argument is a constant if it is the same in all calls.
func (w *writer) argSpecs(m *pte.Method) [][]*delegate.ArgSpec {
	args := make([][]*delegate.ArgSpec, len(m.Delegates))
	for c := range m.Chains {
		for i := range m.Chains[c].Instructions {
			in := &m.Chains[c].Instructions[i]
			switch {
			case in.Kind != pte.DelegateCall:
			case args[in.Index] == nil:
				for _, v := range in.Args {
					args[in.Index] = append(args[in.Index], w.argSpec(m, v))
				}
			default:
				differ(args[in.Index], in.Args)
			}
		}
	}
	return args
}

// differ makes arguments variable that another call has other values for.
func differ(args []*delegate.ArgSpec, values []int) {
	for k, a := range args {
		if a != nil && (k >= len(values) || a.Value != values[k]) {
			a.Const, a.Dynamism = nil, tensor.DynamicBound
		}
	}
}

func (w *writer) argSpec(m *pte.Method, v int) *delegate.ArgSpec {
	t := m.Values[v].Tensor
	if m.Values[v].Kind != tensor.KindTensor {
		return nil
	}
	a := &delegate.ArgSpec{Value: v, DType: t.DType, Sizes: t.Sizes, DimOrder: t.DimOrder, Dynamism: t.Dynamism}
	switch t.Storage {
	case pte.Constant:
		a.Const = t.Data
	case pte.External:
		a.Const, _, _ = (&data{w.options.Named, w.spec.Named}).TensorData(t)
	}
	return a
}

// Layers lists the layers of all payloads, in order.
func (q *Quantization) Layers() (list []Layer) {
	for _, p := range q.order {
		for _, l := range q.payloads[p].Layers() {
			list = append(list, Layer{Method: q.w.spec.Methods[p.method].Name, Delegate: p.delegate, Layer: l})
		}
	}
	return list
}

// Calibrating returns a backend for runs of the program that record the ranges of values.
func (q *Quantization) Calibrating() delegate.Backend {
	return observing{q.by, q, lowering.Floats.Calibrate}
}

// Measuring returns a backend for runs of the program that measure each layer.
func (q *Quantization) Measuring() delegate.Backend {
	return observing{q.by, q, lowering.Floats.Measure}
}

// observing is a backend of the payloads that are to be quantized.
type observing struct {
	delegate.Backend
	q     *Quantization
	image func(lowering.Floats, context.Context, *delegate.Payload) (delegate.Image, error)
}

// Compile implements delegate.Backend.
func (o observing) Compile(ctx context.Context, p *delegate.Payload) (delegate.Image, error) {
	i := slices.IndexFunc(o.q.w.spec.Methods, func(m pte.Method) bool { return m.Name == p.Method })
	if f := o.q.payloads[at{i, p.Index}]; f != nil {
		return o.image(f, ctx, p)
	}
	return o.Backend.Compile(ctx, p)
}

// Quantized is a quantized program.
type Quantized struct {
	Data   []byte
	Layers []bool // by layer: it is quantized
}

// Write returns the program with the layers quantized for which skip returns false, by their index.
func (q *Quantization) Write(skip func(layer int) bool) (*Quantized, error) {
	w, err := newWriter(q.w.bytesIn, q.w.options)
	if err != nil {
		return nil, err
	}
	w.quantized = make(map[at]*lowering.Quantized)
	out, first := &Quantized{}, 0
	for _, p := range q.order {
		f := q.payloads[p]
		n := len(f.Layers())
		is := make([]bool, n)
		x, err := f.Write(func(l int) bool { return skip(first + l) })
		if err != nil {
			return nil, fmt.Errorf("method %q, delegate %d: %w", w.spec.Methods[p.method].Name, p.delegate, err)
		}
		if x != nil {
			w.quantized[p] = x
			for _, l := range x.Quantized {
				is[l] = true
			}
		}
		out.Layers, first = append(out.Layers, is...), first+n
	}
	if len(w.quantized) == 0 {
		out.Data = slices.Clone(q.w.bytesIn)
		return out, nil
	}
	out.Data, err = w.writeQuantized(q.by)
	return out, err
}

// writeQuantized returns the program with quantized payloads.
func (w *writer) writeQuantized(by lowering.Quantizer) ([]byte, error) {
	w.share()
	w.lost = w.unusedNames(by)
	for i := range w.spec.Methods {
		if err := w.keep(i); err != nil {
			return nil, fmt.Errorf("method %q: %w", w.spec.Methods[i].Name, err)
		}
	}
	if w.constants.err != nil {
		return nil, w.constants.err
	}
	data := w.bytes()
	if _, err := pte.Parse(data, pte.Limits{}); err != nil {
		return nil, fmt.Errorf("the quantized program is not valid: %w", err)
	}
	return data, nil
}

// unusedNames returns the keys of named data that only payloads use which are replaced.
func (w *writer) unusedNames(by lowering.Quantizer) map[string]bool {
	namer, ok := by.(delegate.Namer)
	if !ok {
		return nil
	}
	lost, kept := make(map[string]bool), make(map[string]bool)
	for i := range w.spec.Methods {
		for d := range w.spec.Methods[i].Delegates {
			x := &w.spec.Methods[i].Delegates[d]
			if x.ID != by.ID() {
				return nil // it may use any of them
			}
			keys, err := namer.Names(x.Data)
			if err != nil {
				return nil
			}
			to := kept
			if w.quantized[at{i, d}] != nil {
				to = lost
			}
			for _, key := range keys {
				to[key] = true
			}
		}
	}
	maps.DeleteFunc(lost, func(key string, _ bool) bool { return kept[key] })
	return lost
}

// quantizedDelegate returns an entry of a method's delegates with a quantized payload.
func (w *writer) quantizedDelegate(x *lowering.Quantized, id string) *tree.Node {
	return tree.New("BackendDelegate").With("id", id).With("processed", inSegment(w.payload(w.encoded(x.Written)))).
		With("compile_specs", []*tree.Node{})
}

// quantizedCalls returns the chains of method i with the arguments that quantized payloads have. values are those of the
// result, to which the constants of payloads are added.
func (w *writer) quantizedCalls(i int, plan *tree.Node, values []*tree.Node) (chains, all []*tree.Node) {
	added := make(map[int][]tree.Scalar) // by delegate: constants
	for c, chain := range nodes(plan, "chains") {
		chain = copied(chain)
		var list []*tree.Node
		for k, n := range nodes(chain, "instructions") {
			in := &w.spec.Methods[i].Chains[c].Instructions[k]
			x := w.quantized[at{i, in.Index}]
			if in.Kind != pte.DelegateCall || x == nil {
				list = append(list, n)
				continue
			}
			if _, ok := added[in.Index]; !ok {
				added[in.Index] = nil
				for j := range x.Constants {
					added[in.Index] = append(added[in.Index], tree.Scalar(len(values)))
					values = append(values, w.constant(tensorNode(x.Constants[j].DType, x.Constants[j].Sizes, nil), x.Constants[j].Data))
				}
			}
			list = append(list, withArguments(n, quantizedArguments(in.Args, x, added[in.Index])))
		}
		chains = append(chains, chain.With("instructions", list))
	}
	return chains, values
}

// quantizedArguments returns the arguments of a call of a quantized payload.
func quantizedArguments(args []int, x *lowering.Quantized, constants []tree.Scalar) (list []tree.Scalar) {
	for _, k := range x.Inputs {
		list = append(list, tree.Scalar(args[k]))
	}
	list = append(list, constants...)
	for _, v := range args[x.OldInputs:] {
		list = append(list, tree.Scalar(v))
	}
	return list
}

// withArguments returns an instruction of a delegate with other arguments.
func withArguments(n *tree.Node, args []tree.Scalar) *tree.Node {
	n = copied(n)
	return n.With("instr_args", copied(n.Fields["instr_args"].(*tree.Node)).With("args", args))
}
