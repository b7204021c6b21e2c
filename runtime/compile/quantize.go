package compile

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/tree"
)

// QuantizeOptions are the options of [OpenQuantization].
type QuantizeOptions struct {
	By     lowering.Quantizer
	Scheme lowering.Scheme
	Named  func(key string) ([]byte, bool) // as of [Options]
	// FileBytes is as of [Options].
	FileBytes int64
	Operators *kernels.Set
	Methods   []string // whose payloads are quantized, nil for all
	// Embeds reports whether the table of an embedding is quantized to 8 bits, by its name METHOD:embedding:CHAIN:INSTRUCTION; nil for none.
	Embeds func(name string) bool
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
	// Embeddings are the names of those that are quantized.
	Embeddings []string
}

// OpenQuantization reads a program with payloads of floats, as [Lower] and exporters write them. It keeps data.
func OpenQuantization(data []byte, o QuantizeOptions) (*Quantization, error) {
	w, err := newWriter(data, &Options{Named: o.Named, FileBytes: o.FileBytes})
	if err != nil {
		return nil, err
	}
	q := &Quantization{w: w, by: o.By, payloads: make(map[at]lowering.Floats)}
	for i := range w.spec.Methods {
		m := &w.spec.Methods[i]
		if m.Err != nil || o.Methods != nil && !slices.Contains(o.Methods, m.Name) {
			continue
		}
		if o.Embeds != nil {
			_, names := w.embeddings(m, o.Embeds)
			q.Embeddings = append(q.Embeddings, names...)
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
		q.leaveDivisors(i, o.Operators)
	}
	return q, nil
}

// maxDivisorRounds is how many runs of a method, or rounds of a loop, divisors are followed back through state.
const maxDivisorRounds = 4

// leaveDivisors leaves the layers of method i as they are by whose results the program divides. A value may be read before the
// instruction that writes it: in a loop, and in the next run if it is state.
func (q *Quantization) leaveDivisors(i int, operators *kernels.Set) {
	m, divisors := &q.w.spec.Methods[i], make(map[int]bool)
	for range maxDivisorRounds {
		for _, c := range m.Chains {
			for k := range c.Instructions {
				in := &c.Instructions[len(c.Instructions)-1-k]
				for _, v := range q.divisorsOf(i, in, operators, divisors) {
					divisors[v] = true
				}
			}
		}
	}
}

// poles are the classes of operators whose function has a pole at 0, by the argument.
var poles = map[opclass.Class]int{opclass.Div: 1, opclass.Rsqrt: 0, opclass.Log: 0}

// nonzero are the classes of operators whose results are not 0 where the operands are.
var nonzero = []opclass.Class{opclass.Exp, opclass.Cos, opclass.Sigmoid, opclass.Softmax, opclass.LogSoftmax, opclass.LayerNorm,
	opclass.AddScalar, opclass.SubScalar, opclass.AddMM, opclass.Linear, opclass.Convolution}

// keepsZero reports whether results of an operator may be 0 where its operands are small; products have many terms.
func keepsZero(m *pte.Method, class opclass.Class, args []int) bool {
	if class == opclass.MM || class == opclass.BMM {
		if args[0] < 0 {
			return false
		}
		t := m.Values[args[0]].Tensor
		return t != nil && len(t.Sizes) > 1 && t.Sizes[len(t.Sizes)-1] < lowering.FewTerms
	}
	return !slices.Contains(nonzero, class)
}

// divisorsOf returns the values that an instruction divides by, and those of whose elements divisors consist.
func (q *Quantization) divisorsOf(i int, in *pte.Instruction, operators *kernels.Set, divisors map[int]bool) (list []int) {
	m := &q.w.spec.Methods[i]
	switch in.Kind {
	case pte.MoveCall:
		if divisors[in.Target] {
			return []int{in.Index}
		}
	case pte.DelegateCall:
		if f := q.payloads[at{i, in.Index}]; f != nil {
			for _, k := range f.Divisors(func(k int) bool { return k < len(in.Args) && divisors[in.Args[k]] }) {
				if k < len(in.Args) {
					list = append(list, in.Args[k])
				}
			}
		}
	case pte.KernelCall:
		op, _, ok, err := operators.Lookup(m.Operators[in.Index].FullName())
		if err != nil || !ok || len(in.Args) < 2 {
			return nil
		}
		if pole, ok := poles[op.Class]; ok {
			list = append(list, in.Args[pole])
		}
		if op.Name() == "aten::copy_" && divisors[in.Args[0]] {
			return append(list, in.Args[1])
		}
		last := len(in.Args) - 1 // the result
		if keepsZero(m, op.Class, in.Args) && slices.ContainsFunc(withItems(m, in.Args[last:]), func(v int) bool { return divisors[v] }) {
			list = append(list, withItems(m, in.Args[:last])...)
		}
	}
	return list
}

// withItems returns values with the items of lists.
func withItems(m *pte.Method, values []int) []int {
	list := slices.Clone(values)
	for _, v := range values {
		if v >= 0 {
			list = append(list, m.Values[v].Items...)
		}
	}
	return list
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

// Trying returns a backend for runs of the program with quantized layers, as [Quantization.Write] writes it.
func (q *Quantization) Trying(forms lowering.Forms) delegate.Backend {
	first, n := make(map[lowering.Floats]int), 0
	for _, p := range q.order {
		first[q.payloads[p]] = n
		n += len(q.payloads[p].Layers())
	}
	return observing{q.by, q, func(f lowering.Floats, ctx context.Context, p *delegate.Payload) (delegate.Image, error) {
		return f.Try(ctx, p, func(l int) lowering.SchemeName { return forms(first[f] + l) })
	}}
}

// Set changes how ranges are found, and whether biases are corrected; see [lowering.Floats].
func (q *Quantization) Set(o lowering.Observer, corrected bool) {
	for _, f := range q.payloads {
		f.Set(o, corrected)
	}
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
	Data   tree.Pieces    // which share the memory of what was read
	Layers []bool         // by layer: it is quantized
	Left   map[int]string // why others stay that could be quantized, by layer
}

// Write returns the program with quantized layers.
func (q *Quantization) Write(forms lowering.Forms) (*Quantized, error) {
	w, err := newWriter(q.w.bytesIn, q.w.options)
	if err != nil {
		return nil, err
	}
	w.quantized = make(map[at]*lowering.Quantized)
	if len(q.Embeddings) > 0 {
		w.embeds = func(name string) bool { return slices.Contains(q.Embeddings, name) }
	}
	out, first := &Quantized{Left: make(map[int]string)}, 0
	for _, p := range q.order {
		f := q.payloads[p]
		n := len(f.Layers())
		is := make([]bool, n)
		x, err := f.Write(func(l int) lowering.SchemeName { return forms(first + l) })
		if err != nil {
			return nil, fmt.Errorf("method %q, delegate %d: %w", w.spec.Methods[p.method].Name, p.delegate, err)
		}
		if x != nil {
			w.quantized[p] = x
			for _, l := range x.Quantized {
				is[l] = true
			}
			for l, why := range x.Left {
				out.Left[first+l] = why
			}
		}
		out.Layers, first = append(out.Layers, is...), first+n
	}
	if len(w.quantized)+len(q.Embeddings) == 0 {
		out.Data = tree.Pieces{q.w.bytesIn}
		return out, nil
	}
	out.Data, err = w.writeQuantized(q.by)
	return out, err
}

// writeQuantized returns the program with quantized payloads.
func (w *writer) writeQuantized(by lowering.Quantizer) (tree.Pieces, error) {
	w.lost = w.unusedNames(by)
	w.share()
	for i := range w.spec.Methods {
		if err := w.keep(i); err != nil {
			return nil, fmt.Errorf("method %q: %w", w.spec.Methods[i].Name, err)
		}
	}
	return w.program(), w.constants.err
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
	return tree.New("BackendDelegate").With("id", id).With("processed", inSegment(w.payload(w.encoded(x.Written)...))).
		With("compile_specs", []*tree.Node{})
}

// quantizedCalls are the chains of a method with the arguments that quantized payloads and embeddings have.
type quantizedCalls struct {
	*writer
	method     int
	embeddings map[[2]int]int // operators by chain and instruction
	added      []*tree.Node   // values behind those of the method
	constants  map[int][]tree.Scalar
	chains     []*tree.Node
}

// quantizedCalls returns the calls of method i.
func (w *writer) quantizedCalls(i int, plan *tree.Node) *quantizedCalls {
	q := &quantizedCalls{writer: w, method: i, constants: make(map[int][]tree.Scalar)}
	if w.embeds != nil {
		q.embeddings, _ = w.embeddings(&w.spec.Methods[i], w.embeds)
	}
	for c, chain := range nodes(plan, "chains") {
		var list []*tree.Node
		for k, n := range nodes(chain, "instructions") {
			list = append(list, q.instruction(c, k, n))
		}
		q.chains = append(q.chains, copied(chain).With("instructions", list))
	}
	return q
}

// instruction returns an instruction of the result.
func (q *quantizedCalls) instruction(c, k int, n *tree.Node) *tree.Node {
	m := &q.spec.Methods[q.method]
	in := &m.Chains[c].Instructions[k]
	if _, ok := q.embeddings[[2]int{c, k}]; ok {
		values, args := q.embedding8(m, in.Args, len(m.Values)+len(q.added))
		q.added = append(q.added, values...)
		return withArguments(n, args)
	}
	x := q.quantized[at{q.method, in.Index}]
	if in.Kind != pte.DelegateCall || x == nil {
		return n
	}
	if _, ok := q.constants[in.Index]; !ok {
		q.constants[in.Index] = nil
		for j := range x.Constants {
			q.constants[in.Index] = append(q.constants[in.Index], tree.Scalar(len(m.Values)+len(q.added)))
			q.added = append(q.added, q.constant(tensorNode(x.Constants[j].DType, x.Constants[j].Sizes, nil), x.Constants[j].Data))
		}
	}
	return withArguments(n, quantizedArguments(in.Args, x, q.constants[in.Index]))
}

// operators returns the operators of the result.
func (q *quantizedCalls) operators(plan *tree.Node) (list []*tree.Node) {
	renamed := make(map[int]bool)
	for _, op := range q.embeddings {
		renamed[op] = true
	}
	for i, n := range nodes(plan, "operators") {
		if renamed[i] {
			n = copied(n).With("name", embedding8Op)
		}
		list = append(list, n)
	}
	return list
}

// unused reports for each value of the method whether calls used it that do not any more.
func (q *quantizedCalls) unused() []bool {
	m := &q.spec.Methods[q.method]
	unused, used := make([]bool, len(m.Values)), make([]bool, len(m.Values))
	for c := range m.Chains {
		for k := range m.Chains[c].Instructions {
			in := &m.Chains[c].Instructions[k]
			for _, v := range in.Args {
				if v >= 0 {
					unused[v] = true
				}
			}
			switch in.Kind {
			case pte.MoveCall:
				used[in.Index], used[in.Target] = true, true
			case pte.JumpFalseCall, pte.FreeCall:
				used[in.Index] = true
			}
		}
	}
	for _, chain := range q.chains {
		for _, n := range nodes(chain, "instructions") {
			args, _ := n.Fields["instr_args"].(*tree.Node).Fields["args"].([]tree.Scalar)
			for _, v := range args {
				if int(v) < len(used) {
					used[v] = true
				}
			}
		}
	}
	keep := func(list []int) {
		for _, v := range list {
			if v >= 0 {
				used[v] = true
			}
		}
	}
	keep(m.Inputs)
	keep(m.Outputs)
	for v := range m.Values {
		keep(m.Values[v].Items)
	}
	for v := range unused {
		unused[v] = unused[v] && !used[v]
	}
	return unused
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
