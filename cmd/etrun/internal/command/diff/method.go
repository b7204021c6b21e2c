package diff

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/edits"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// methodFacts is a method with what diff compares.
type methodFacts struct {
	*session.Session
	meta   *etrun.MethodMeta
	spec   *pte.Method
	loaded *etrun.Method   // nil if it does not load here
	infos  []delegate.Info // of delegates, if it loads
}

func newMethodFacts(ctx context.Context, s *session.Session, name string, say func(string, ...any)) (*methodFacts, error) {
	meta, err := s.Meta(name)
	if err != nil {
		return nil, err
	}
	f := &methodFacts{Session: s, meta: meta, spec: session.MethodSpec(s.Program, name)}
	if len(meta.Delegates) == 0 {
		return f, nil
	}
	if f.loaded, err = s.Load(ctx, name); err != nil {
		say("%s: %s does not load here, delegates are compared by their bytes: %v", s.Path, cli.Printable(name), err)
		return f, context.Cause(ctx)
	}
	f.infos = f.loaded.Delegates()
	return f, nil
}

func (f *methodFacts) close() {
	if f.loaded != nil {
		_ = f.loaded.Close() // nothing has run
	}
}

// methods compares a method of two programs.
func (d *differ) methods(a, b *methodFacts) {
	d.values(inInputs, a.meta.Inputs, b.meta.Inputs, a.spec, b.spec)
	d.values(inOutputs, a.meta.Outputs, b.meta.Outputs, a.spec, b.spec)
	d.operators(a, b)
	d.instructions(a, b)
	d.plan(a, b)
	d.constants(a, b)
	d.delegates(a, b)
}

func (d *differ) values(section string, a, b []etrun.ValueMeta, in, of *pte.Method) {
	for i := range max(len(a), len(b)) {
		d.texts(section, fmt.Sprintf("%d", i), valueText(a, i, in), valueText(b, i, of))
	}
}

// valueText describes input or output i; it is empty if there is none.
func valueText(list []etrun.ValueMeta, i int, m *pte.Method) string {
	if i >= len(list) {
		return ""
	}
	r := session.NewValueReport(list[i], m)
	text := r.ShapeText()
	if r.Order != "" {
		text += ", " + r.Order
	}
	if r.Storage != "" {
		text += ", " + r.Storage
	}
	if r.Name != "" {
		text += fmt.Sprintf(", %.100q", r.Name)
	}
	return text
}

func (d *differ) operators(a, b *methodFacts) {
	calls := func(f *methodFacts, name string) string {
		for _, o := range f.meta.Operators {
			if o.Name == name && o.Calls > 0 {
				return cli.Count(o.Calls, "call", "calls")
			}
		}
		return ""
	}
	var names []string
	for _, o := range append(slices.Clone(a.meta.Operators), b.meta.Operators...) {
		names = append(names, o.Name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		d.texts(inOperators, name, calls(a, name), calls(b, name))
	}
}

// maxEdits is the maximum number of lines about the instructions of a method, and about
// the nodes of a delegate.
const maxEdits = 100

// instructions compares chains line by line.
func (d *differ) instructions(a, b *methodFacts) {
	for c := range max(len(a.spec.Chains), len(b.spec.Chains)) {
		d.lines(inInstructions, fmt.Sprintf("chain %d, instruction", c), chainLines(a.spec, c), chainLines(b.spec, c))
	}
}

// lines adds the lines that are in only one of two lists.
func (d *differ) lines(section, item string, a, b []string) {
	n := 0
	for _, p := range edits.Align(a, b) {
		if p.A >= 0 && p.B >= 0 {
			continue
		}
		if n++; n > maxEdits {
			continue
		}
		if p.A >= 0 {
			d.add(section, fmt.Sprintf("%s %d", item, p.A), a[p.A], "", "")
		} else {
			d.add(section, fmt.Sprintf("%s %d", item, p.B), "", b[p.B], "")
		}
	}
	if n > maxEdits {
		d.add(section, item+"s", "", "", fmt.Sprintf("%d more differ", n-maxEdits))
	}
}

func chainLines(m *pte.Method, c int) (lines []string) {
	if c >= len(m.Chains) {
		return nil
	}
	for i := range m.Chains[c].Instructions {
		lines = append(lines, instructionText(m, &m.Chains[c].Instructions[i]))
	}
	return lines
}

// instructionText formats an instruction; arguments are described by type and value, not
// by index in the value table.
func instructionText(m *pte.Method, in *pte.Instruction) string {
	args := in.Args
	name := in.Kind.String()
	switch in.Kind {
	case pte.KernelCall:
		name = m.Operators[in.Index].FullName()
	case pte.DelegateCall:
		name = fmt.Sprintf("delegate %d, %s", in.Index, m.Delegates[in.Index].ID)
	case pte.MoveCall:
		args = []int{in.Index, in.Target}
	case pte.JumpFalseCall:
		return fmt.Sprintf("%s(%s) to %d", name, argText(m, in.Index), in.Target)
	default:
		args = []int{in.Index}
	}
	parts := make([]string, len(args))
	for i, v := range args {
		parts[i] = argText(m, v)
	}
	return name + "(" + strings.Join(parts, ", ") + ")"
}

func argText(m *pte.Method, v int) string {
	if v < 0 {
		return "none"
	}
	x := &m.Values[v]
	switch x.Kind {
	case tensor.KindTensor:
		return typeText(x.Tensor)
	case tensor.KindInt:
		return fmt.Sprint(x.Int)
	case tensor.KindDouble:
		return fmt.Sprint(x.Double)
	case tensor.KindBool:
		return fmt.Sprint(x.Bool)
	case tensor.KindString:
		return fmt.Sprintf("%.100q", x.Long.Str)
	case tensor.KindDoubleList:
		return fmt.Sprint(x.Long.Doubles)
	case tensor.KindBoolList:
		return fmt.Sprint(x.Long.Bools)
	case tensor.None:
		return "none"
	}
	parts := make([]string, len(x.Items))
	for i, item := range x.Items {
		parts[i] = argText(m, item)
	}
	return "[" + strings.Join(parts, " ") + "]"
}

func typeText(t *pte.Tensor) string {
	text := t.DType.String() + " " + tensor.FormatSizes(t.Sizes)
	if !slices.Equal(t.DimOrder, tensor.ContiguousOrder(len(t.Sizes))) && len(t.DimOrder) > 0 {
		text += fmt.Sprintf(" order %v", t.DimOrder)
	}
	if t.Dynamism != tensor.Static {
		text += " at most"
	}
	return text
}

// plan compares the file's arenas, and the positions of values in them.
func (d *differ) plan(a, b *methodFacts) {
	for i := range max(len(a.spec.Arenas), len(b.spec.Arenas)) {
		d.texts(inPlan, fmt.Sprintf("arena %d", i), arenaText(a.spec, i), arenaText(b.spec, i))
	}
	if len(a.spec.Values) != len(b.spec.Values) {
		return
	}
	moved, first := 0, 0
	for v := range a.spec.Values {
		x, y := a.spec.Values[v].Tensor, b.spec.Values[v].Tensor
		if x == nil || y == nil || x.Storage == y.Storage && x.Arena == y.Arena && x.Offset == y.Offset {
			continue
		}
		if moved++; moved == 1 {
			first = v
		}
	}
	if moved > 0 {
		d.add(inPlan, cli.Count(moved, "value", "values"), "", "", fmt.Sprintf("moved, the first is value %d: %s, then %s",
			first, placeText(a.spec.Values[first].Tensor), placeText(b.spec.Values[first].Tensor)))
	}
}

func arenaText(m *pte.Method, i int) string {
	if i >= len(m.Arenas) {
		return ""
	}
	text := fmt.Sprintf("%d bytes", m.Arenas[i].Size)
	if m.Arenas[i].Device != 0 {
		text += fmt.Sprintf(" on device %d:%d", m.Arenas[i].Device, m.Arenas[i].DeviceIndex)
	}
	return text
}

func placeText(t *pte.Tensor) string {
	switch t.Storage {
	case pte.Planned, pte.PlannedInit, pte.ExternalPlanned:
		return fmt.Sprintf("%v at byte %d of arena %d", t.Storage, t.Offset, t.Arena)
	}
	return t.Storage.String()
}

// part is how much of a mapped file is in memory while it is compared.
const part = 4 << 20

// digest identifies bytes.
func digest(data []byte) string {
	h := sha256.New()
	for len(data) > 0 {
		n, _ := h.Write(data[:min(part, len(data))])
		data = data[n:]
		cpu.Forget()
	}
	return fmt.Sprintf("sha256 %.8x", h.Sum(nil))
}

func equal(a, b []byte) bool {
	same := len(a) == len(b)
	for same && len(a) > 0 {
		n := min(part, len(a))
		same, a, b = bytes.Equal(a[:n], b[:n]), a[n:], b[n:]
		cpu.Forget()
	}
	return same
}
