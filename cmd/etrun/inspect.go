package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/cmd/etrun/internal/valuetext"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/lower"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/speech"
	"github.com/etrun-go/etrun/text"
	"github.com/spf13/cobra"
)

// programReport is the JSON object of inspect; the text is printed from it.
type programReport struct {
	Schema  string         `json:"schema"`
	Model   string         `json:"model"`
	Bytes   int64          `json:"bytes"`
	Version uint32         `json:"program_version"`
	Header  bool           `json:"extended_header"`
	Bundled int            `json:"bundled_cases"`
	Named   map[string]int `json:"named_data,omitempty"` // sizes by key
	Methods []methodReport `json:"methods"`
	Speech  string         `json:"speech,omitempty"` // the family of a program that transcribe runs
	Media   []text.Medium  `json:"media,omitempty"`  // what prompts of a language model have besides text
}

type methodReport struct {
	Name         string                `json:"name"`
	Instructions int                   `json:"instructions"`
	Inputs       []session.ValueReport `json:"inputs"`
	Outputs      []session.ValueReport `json:"outputs"`
	Operators    []operatorReport      `json:"operators"`
	Nodes        []nodeReport          `json:"nodes"` // the instructions of the file
	Delegates    []delegateReport      `json:"delegates"`
	Folded       []operatorCount       `json:"folded,omitempty"`    // instructions executed once, at load
	Rewritten    []rewriteCount        `json:"rewritten,omitempty"` // instructions removed or changed by rewrites
	Lowered      *loweredReport        `json:"lowered,omitempty"`   // with --lower auto, all or verify
	Repairs      []string              `json:"repairs,omitempty"`   // repaired faults of the exporter
	Faults       []string              `json:"faults,omitempty"`    // faults of the exporter that are not repaired
	Together     *togetherReport       `json:"together,omitempty"`
	Memory       memoryReport          `json:"memory"`
	LoadError    string                `json:"load_error,omitempty"` // why the method does not load here
}

// togetherReport describes the calls of several instances of a method with state, such as those for the texts of a language model.
type togetherReport struct {
	Batched  int    `json:"once"`             // instructions that run once for the calls of one row of all instances
	Separate int    `json:"each"`             // that run in each instance
	Reason   string `json:"reason,omitempty"` // why none run together
}

type operatorReport struct {
	Name      string `json:"name"`
	Calls     int    `json:"calls"`
	Available bool   `json:"available"`
}

// operatorCount counts instructions of one operator.
type operatorCount struct {
	Name  string `json:"name"`
	Calls int    `json:"calls"`
}

type rewriteCount struct {
	Rewrite string `json:"rewrite"`
	operatorCount
}

type delegateReport struct {
	ID           string            `json:"id"`
	PayloadBytes int               `json:"payload_bytes"`
	Calls        int               `json:"calls"`
	Available    bool              `json:"available"`
	Engine       string            `json:"engine,omitempty"`
	Nodes        []nodeReport      `json:"nodes,omitempty"`
	WeightBytes  int64             `json:"weight_bytes,omitempty"`
	ScratchBytes int64             `json:"scratch_bytes,omitempty"`
	Facts        map[string]string `json:"facts,omitempty"`

	info delegate.Info
}

// nodeReport is an operation of a delegate, or an instruction of the file.
type nodeReport struct {
	Name       string         `json:"name"`
	At         string         `json:"at,omitempty"` // of an instruction: its index, in a chain other than the first CHAIN:INDEX
	Detail     string         `json:"detail,omitempty"`
	Attributes map[string]any `json:"attributes,omitempty"` // by name: arguments, stride, padding, bounds, scales, …
}

func (n *nodeReport) set(name string, value any) {
	if n.Attributes == nil {
		n.Attributes = make(map[string]any)
	}
	n.Attributes[valuetext.Cut(name)] = value
}

// nodesInFile lists the instructions of a method with their arguments. Those of an operator that is missing have no names.
func nodesInFile(m *pte.Method) []nodeReport {
	list := []nodeReport{}
	for c := range m.Chains {
		for i, in := range m.Chains[c].Instructions {
			n := nodeReport{Name: in.Kind.String(), At: ir.Origin{Chain: c, Index: i}.String()}
			var sig *kernels.Signature
			switch in.Kind {
			case pte.KernelCall:
				n.Name = valuetext.Cut(m.Operators[in.Index].FullName())
				_, sig, _, _ = etrun.DefaultOperators().Lookup(m.Operators[in.Index].FullName())
			case pte.DelegateCall:
				n.Name, n.Detail = valuetext.Cut(m.Delegates[in.Index].ID), fmt.Sprintf("delegate %d", in.Index)
			}
			for k, v := range in.Args {
				switch {
				case sig == nil:
					n.set(fmt.Sprintf("argument %d", k), valuetext.JSONInFile(m, v))
				case k < len(sig.Args): // results repeat arguments
					n.set(sig.Args[k].Name, valuetext.JSONInFile(m, v))
				}
			}
			list = append(list, n)
		}
	}
	return list
}

// memoryReport is in bytes. Runtime figures are known only for methods that load.
type memoryReport struct {
	Constants  int64   `json:"constants"`
	FileArenas []int64 `json:"file_arenas"`
	Planned    int64   `json:"planned,omitempty"` // arenas, state and unbounded tensors at the start
	Source     string  `json:"plan,omitempty"`    // the file's plan or etrun's own
	State      int64   `json:"state,omitempty"`
	HalfState  bool    `json:"half_state,omitempty"`          // some of it is float16, as with --kv-cache half
	Folded     int64   `json:"folded_constants,omitempty"`    // computed at load
	Rewritten  int64   `json:"rewritten_constants,omitempty"` // computed by rewrites
	Released   int64   `json:"released_constants,omitempty"`  // of constants, given back because nothing reads them any more
	Packed     int64   `json:"packed_weights,omitempty"`      // of all delegates, including those made by lowering
	Scratch    int64   `json:"scratch,omitempty"`             // working memory of these, an upper bound
	LowerBound int64   `json:"lower_bound,omitempty"`
	Conflicts  int     `json:"conflicts,omitempty"` // pairs of live storages that overlap in the file's plan
}

func newInspect(a *app) *cobra.Command {
	o := session.Options{Say: a.Note, Describe: true}
	var lowered, all bool
	var weight savedWeight
	c := &cobra.Command{
		Use:   "inspect FILE.pte...",
		Short: "Show the contents of programs, and whether they run here",
		Long: "Show the methods of programs: inputs, outputs, operators and whether this build supports them, delegates and memory.\n" +
			"The exit code is 0 for every readable program, whether it runs here or not. Of several files each has a part of the\n" +
			"output, in their order. A file that is not readable does not end the others; the exit code is the worst one.",
		Example: "  etrun inspect model.pte\n  etrun inspect model.pte --data weights.ptd\n  etrun inspect *.pte\n" +
			"  etrun inspect model.pte --weight fc.weight -o fc.npy\n" +
			"  etrun inspect model.pte --json | jq '.methods[].operators[].name'\n" +
			"  etrun inspect *.pte --json | jq '.files[].program.methods[].name'",
		Args:              someFiles,
		ValidArgsFunction: cli.CompletePrograms,
		RunE: func(c *cobra.Command, args []string) error {
			if lowered && o.Lower != string(etrun.LowerAll) {
				o.Lower = string(etrun.LowerAuto)
			}
			i := inspection{a, &o, lowered, all, weight}
			switch {
			case weight.name == "" && (weight.path != "" || weight.real):
				return session.Usage("-o and --dequantize are for --weight NAME")
			case weight.name != "" && len(args) > 1:
				return session.Usage("--weight with %d programs, want one", len(args))
			case weight.name != "":
				return i.saveWeight(c.Context(), args[0])
			case len(args) == 1:
				return i.one(c.Context(), args[0])
			}
			return i.several(c.Context(), args)
		},
	}
	c.Flags().BoolVarP(&all, "verbose", "v", false, "show all methods and delegates, also constant methods and identical delegates, and the nodes of quantized delegates with their scales and zero points")
	c.Flags().BoolVar(&lowered, "lowered", false,
		"also show each instruction's region, or why it has none, and the regions that were not lowered")
	c.Flags().StringVar(&weight.name, "weight", "", "write the constant `NAME`, as etrun view shows it, to the file of -o instead: the elements as stored, packed ones as int8")
	c.Flags().StringVarP(&weight.path, "output", "o", "", "with --weight: write it to `FILE`.npy")
	c.Flags().BoolVar(&weight.real, "dequantize", false, "with --weight: write the float32 numbers that quantized elements mean")
	o.AddFlags(c.Flags())
	return c
}

func inspect(ctx context.Context, o *session.Options, path string) (*programReport, error) {
	s, err := session.Open(ctx, path, o)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	prog, spec := s.Program, s.Spec()
	report := &programReport{Schema: "etrun.inspect/1", Model: path, Bytes: spec.Size, Version: spec.Version,
		Header: spec.Header != nil, Bundled: session.CountCases(prog.Bundle()), Named: make(map[string]int)}
	for key, data := range spec.Named {
		report.Named[key] = len(data)
	}
	for _, name := range prog.MethodNames() {
		m, err := inspectMethod(ctx, prog, name)
		if err != nil {
			return nil, err
		}
		report.Methods = append(report.Methods, m)
	}
	if family, ok := speech.FamilyOf(prog); ok {
		report.Speech = string(family)
	}
	report.Media, _, _ = text.MediaOf(prog)
	return report, nil
}

func inspectMethod(ctx context.Context, prog *etrun.Program, name string) (methodReport, error) {
	meta, err := prog.Meta(name)
	if err != nil {
		return methodReport{}, err
	}
	r := methodReport{Name: name, Instructions: meta.Instructions, Inputs: []session.ValueReport{}, Outputs: []session.ValueReport{},
		Operators: []operatorReport{}, Delegates: []delegateReport{},
		Memory: memoryReport{Constants: meta.ConstBytes, FileArenas: append([]int64{}, meta.ArenaBytes...)}}
	spec := session.MethodSpec(prog, name)
	r.Nodes = nodesInFile(spec)
	for _, v := range meta.Inputs {
		r.Inputs = append(r.Inputs, session.NewValueReport(v, spec))
	}
	for _, v := range meta.Outputs {
		r.Outputs = append(r.Outputs, session.NewValueReport(v, spec))
	}
	for _, o := range meta.Operators {
		r.Operators = append(r.Operators, operatorReport(o))
	}
	for _, d := range meta.Delegates {
		r.Delegates = append(r.Delegates, delegateReport{ID: d.ID, PayloadBytes: d.Bytes, Calls: d.Calls, Available: d.Available})
	}
	return r, r.addLoaded(ctx, prog)
}

// addLoaded adds the facts of the loaded method. An error of the load is part of the
// report; a canceled context is an error.
func (r *methodReport) addLoaded(ctx context.Context, prog *etrun.Program) error {
	m, err := prog.Load(ctx, r.Name)
	if err != nil {
		r.LoadError = session.WithHint(err).Error()
		return context.Cause(ctx)
	}
	defer m.Close()
	infos := m.Delegates()
	for i := range r.Delegates {
		r.Delegates[i].describe(infos[i])
	}
	report := m.Report()
	if report.Lowered != nil {
		r.Lowered = reportLowered(report.Lowered)
	}
	r.Memory.countDelegates(infos)
	p := report.Plan
	r.Memory.Planned, r.Memory.Source, r.Memory.State = p.Bytes(), p.Source, p.StateBytes
	r.Memory.HalfState = slices.ContainsFunc(m.StateTensors(), func(t *tensor.Tensor) bool { return t.DType == tensor.Float16 })
	r.Memory.LowerBound, r.Memory.Conflicts = p.LowerBound, len(p.Conflicts)
	r.countFolded(report.Folded)
	r.countRewritten(report.Rewritten)
	r.Memory.Released = report.ReleasedBytes
	r.Repairs = report.Repairs
	of := fmt.Sprintf("method %.100q: results may be wrong, because of an exporter fault that is not repaired: ", r.Name)
	for _, w := range prog.Warnings() {
		if text, ok := strings.CutPrefix(w.Text, of); ok && w.Class == delegate.WarnFault {
			r.Faults = append(r.Faults, text)
		}
	}
	if len(m.StateTensors()) > 0 {
		r.Together = (*togetherReport)(&report.Batch)
	}
	return nil
}

// countDelegates sums the memory of delegates; shared working memory counts once.
func (m *memoryReport) countDelegates(infos []delegate.Info) {
	shared := int64(0)
	for i := range infos {
		m.Packed += infos[i].PackedBytes
		m.Scratch += infos[i].Scratch - infos[i].Shared
		shared = max(shared, infos[i].Shared)
	}
	m.Scratch += shared
}

// countFolded counts instructions by operator, in order of first occurrence.
func (r *methodReport) countFolded(folded []lower.Folded) {
	index := make(map[string]int)
	for _, f := range folded {
		at, ok := index[f.Name]
		if !ok {
			at = len(r.Folded)
			index[f.Name] = at
			r.Folded = append(r.Folded, operatorCount{Name: f.Name})
		}
		r.Folded[at].Calls++
		r.Memory.Folded += f.Bytes
	}
}

// countRewritten counts instructions by rewrite and operator, in order of first
// occurrence.
func (r *methodReport) countRewritten(rewritten []lower.Rewritten) {
	index := make(map[[2]string]int)
	for _, w := range rewritten {
		key := [2]string{w.Rewrite, w.Name}
		at, ok := index[key]
		if !ok {
			at = len(r.Rewritten)
			index[key] = at
			r.Rewritten = append(r.Rewritten, rewriteCount{Rewrite: w.Rewrite, operatorCount: operatorCount{Name: w.Name}})
		}
		r.Rewritten[at].Calls++
		r.Memory.Rewritten += w.Bytes
	}
}

func (d *delegateReport) describe(info delegate.Info) {
	d.info = info
	d.Engine, d.WeightBytes, d.ScratchBytes = info.Engine, info.WeightBytes, info.Scratch
	for _, n := range info.Nodes {
		node := nodeReport{Name: n.Name, Detail: n.Detail}
		for _, a := range n.Attributes {
			node.set(a.Name, a.Value)
		}
		d.Nodes = append(d.Nodes, node)
	}
	for _, f := range info.Facts {
		if d.Facts == nil {
			d.Facts = make(map[string]string)
		}
		d.Facts[f[0]] = f[1]
	}
}

// omitInstructions leaves what was lowered.
func (r *programReport) omitInstructions() {
	for i := range r.Methods {
		if l := r.Methods[i].Lowered; l != nil {
			l.Instructions = nil
		}
	}
}
