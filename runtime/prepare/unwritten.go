package prepare

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/etrun-go/etrun/internal/advice"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Files of some exporters miss updates of state, see docs/exporters.md. A method that would read
// such state is refused, unless the program runs unchanged.

// maxSuspects is the largest number of texts about state of one method.
const maxSuspects = 16

// checkStates refuses a method with state that nothing writes. It returns what is only suspect, and
// the faults of a program that runs unchanged.
func (l *load) checkStates(m *ir.Method) (suspect []string, err error) {
	for _, f := range l.Method.Initial { // a method that is not unchanged has the right contents by now
		if l.AsWritten {
			suspect = append(suspect, fmt.Sprintf("state %.100q (value %d) has the initial contents of number %d, which is not its own",
				f.Name, f.Value, f.Index))
		}
	}
	if len(m.Unwritten)+len(m.Misdirected) == 0 {
		return suspect[:min(len(suspect), maxSuspects)], nil
	}
	others := l.elsewhere()
	for i := range m.Unwritten {
		u := &m.Unwritten[i]
		if u.Filled && u.Output && l.trains() {
			continue
		}
		text := l.unwrittenText(u)
		switch l.writtenElsewhere(m, u.Value, others) {
		case surely:
			continue
		case never:
			if !l.AsWritten {
				return nil, l.stateError(m, u.Reader, text+"; "+lostUpdate(m))
			}
		default:
			text += " for certain"
		}
		suspect = append(suspect, text)
	}
	for i := range m.Misdirected {
		a := &m.Misdirected[i]
		text := misdirectedText(a)
		if !a.Idle && !l.AsWritten {
			return nil, &ir.StepError{Origin: a.Origin, Name: "aten::copy_",
				Err: errors.New(text + "; export again with another name for the argument; " + advice.Repair.String())}
		}
		suspect = append(suspect, text)
	}
	return suspect[:min(len(suspect), maxSuspects)], nil
}

// lostUpdate returns the probable cause, and the way out.
func lostUpdate(m *ir.Method) string {
	loop := ""
	if slices.ContainsFunc(m.Steps, func(s ir.Step) bool { return s.IsJump() }) {
		loop = ", or of a view of what a loop carries"
	}
	return "the exporter left out its update, as it does if the new value is itself a buffer" + loop + "; export again with a copy of that value " +
		"(clone it, or add 0) before copy_; " + advice.Repair.String()
}

// trains reports whether an optimizer outside the program writes the method's parameters, which it
// then returns.
func (l *load) trains() bool {
	return slices.ContainsFunc(l.File.Methods, func(m pte.Method) bool { return m.Name == "__et_training_parameters_index_"+l.Method.Name })
}

// stateName returns the name, type and sizes of a state.
func (l *load) stateName(v int) string {
	t := l.Method.Values[v].Tensor
	name := fmt.Sprintf("value %d", v)
	if t.Name != "" {
		name = fmt.Sprintf("%.100q (value %d)", t.Name, v)
	}
	return fmt.Sprintf("state %s, %v of sizes %s,", name, t.DType, tensor.FormatSizes(t.Sizes))
}

func (l *load) unwrittenText(u *ir.Unwritten) string {
	contents := "it has no initial contents"
	if u.Filled {
		contents = "it keeps its initial contents"
	}
	return fmt.Sprintf("%s is read, %s, and no instruction of any method writes it", l.stateName(u.Value), contents)
}

func misdirectedText(a *ir.Misdirected) string {
	to := "no state of its type and sizes lacks an update"
	if len(a.States) > 0 {
		to = fmt.Sprintf("it may belong to any state of the values %v", a.States[:min(len(a.States), maxSuspects)])
	}
	return fmt.Sprintf("an update is copied onto input %d (%s): the exporter mistook the argument for state of the same name, and %s",
		a.Input, a.Place("aten::copy_"), to)
}

// stateError is an error at the step that reads the state, if a step does.
func (l *load) stateError(m *ir.Method, reader int, text string) error {
	if reader >= len(m.Steps) {
		return errors.New(text)
	}
	s := &m.Steps[reader]
	return &ir.StepError{Origin: s.Origin, Name: m.StepName(s), Err: errors.New(text)}
}

// writing is how certain it is that an instruction of another method writes a tensor.
type writing uint8

const (
	never   writing = iota
	perhaps         // it is an argument of a delegate, or of an unknown operator
	surely
)

// writtenElsewhere reports whether another method writes a state, by whatever value that shares its bytes.
func (l *load) writtenElsewhere(m *ir.Method, v int, others *elsewhere) (w writing) {
	for _, v := range m.Storages[m.Values[v].Storage].Values {
		if v < len(l.Method.Values) {
			w = max(w, others.writes(l.Method.Values[v].Tensor))
		}
	}
	return w
}

// elsewhere is what other methods of the program write.
type elsewhere struct {
	names  map[ir.StateKey]writing
	spans  []span // of the arena of shared state
	unread bool   // a method has a fault: nothing is known of what it writes
}

// span is a range of bytes.
type span struct {
	from, to int64
	writing
}

func (l *load) elsewhere() *elsewhere {
	e := &elsewhere{names: make(map[ir.StateKey]writing)}
	for i := range l.File.Methods {
		if other := &l.File.Methods[i]; other.Err != nil {
			e.unread = true
		} else if other != l.Method {
			e.addMethod(other, l.writings(other))
		}
	}
	e.spans = union(e.spans)
	return e
}

// addMethod adds what a method writes. A write to one of several values at the same place, such as a view that the exporter
// left out, is one to all.
func (e *elsewhere) addMethod(m *pte.Method, list []writing) {
	places := make(map[ir.Spot]writing)
	for v, w := range list {
		if t := m.Values[v].Tensor; w != never && ir.Placed(t) {
			places[ir.SpotOf(t)] = max(places[ir.SpotOf(t)], w)
		}
	}
	for v, w := range list {
		t := m.Values[v].Tensor
		if t != nil && ir.Placed(t) {
			w = max(w, places[ir.SpotOf(t)])
		}
		if w != never {
			e.add(t, w)
		}
	}
}

func (e *elsewhere) add(t *pte.Tensor, w writing) {
	if t.Name != "" {
		k, _ := ir.KeyOf(t)
		e.names[k] = max(e.names[k], w)
	}
	if ir.InSharedArena(t) {
		e.spans = append(e.spans, span{t.Offset, t.Offset + t.NBytes(), w})
	}
}

// union returns the union of the spans of each kind, in order.
func union(list []span) (to []span) {
	sort.Slice(list, func(i, k int) bool {
		a, b := &list[i], &list[k]
		return a.writing < b.writing || a.writing == b.writing && a.from < b.from
	})
	for _, s := range list {
		if n := len(to); n > 0 && to[n-1].writing == s.writing && s.from <= to[n-1].to {
			to[n-1].to = max(to[n-1].to, s.to)
			continue
		}
		to = append(to, s)
	}
	return to
}

// writes reports whether another method writes a state, by name or by its bytes.
func (e *elsewhere) writes(t *pte.Tensor) (w writing) {
	if e.unread && (t.Name != "" || ir.InSharedArena(t)) {
		w = perhaps
	}
	if t.Name != "" {
		k, _ := ir.KeyOf(t)
		w = max(w, e.names[k])
	}
	if !ir.InSharedArena(t) {
		return w
	}
	for _, kind := range [...]writing{perhaps, surely} {
		end := span{t.Offset + t.NBytes(), 0, kind}
		i, _ := slices.BinarySearchFunc(e.spans, end, func(a, b span) int {
			return cmp.Or(cmp.Compare(a.writing, b.writing), cmp.Compare(a.from, b.from))
		})
		if i > 0 && e.spans[i-1].writing == kind && e.spans[i-1].to > t.Offset {
			w = max(w, kind)
		}
	}
	return w
}

// writings finds what the instructions of another method, which is not linked, write.
func (l *load) writings(m *pte.Method) []writing {
	f := &foreign{method: m, list: make([]writing, len(m.Values)), base: make([]int, len(m.Values)), known: make([]bool, len(m.Values))}
	for v := range m.Values {
		f.base[v] = v
		t := m.Values[v].Tensor
		f.known[v] = m.Values[v].Kind == tensor.KindTensor && (t.Storage == pte.Constant || t.Storage == pte.External ||
			t.Storage == pte.PlannedInit)
	}
	for _, v := range m.Inputs {
		f.known[v] = true
	}
	for c := range m.Chains {
		for i := range m.Chains[c].Instructions {
			f.add(l, &m.Chains[c].Instructions[i])
		}
	}
	return f.list
}

// foreign collects the writes of a method.
type foreign struct {
	method *pte.Method
	list   []writing
	base   []int  // by value: the value that it is a view of, or itself
	known  []bool // by value: it has contents before the next instruction
}

func (f *foreign) mark(w writing, vs ...int) {
	for _, v := range vs {
		items := f.method.Values[v].Items
		if f.method.Values[v].Kind == tensor.KindTensor {
			items = []int{v}
		}
		for _, v := range items {
			if v >= 0 && f.method.Values[v].Kind == tensor.KindTensor {
				f.list[f.base[v]] = max(f.list[f.base[v]], w)
				f.known[v] = true
			}
		}
	}
}

func (f *foreign) add(l *load, in *pte.Instruction) {
	switch in.Kind {
	case pte.KernelCall:
		f.call(l, in)
	case pte.MoveCall:
		f.mark(surely, in.Target)
	case pte.DelegateCall: // its inputs come first
		outs := 0
		for i, v := range in.Args {
			if f.known[v] {
				outs = i + 1
			}
		}
		f.mark(perhaps, in.Args[outs:]...)
	}
}

// call adds the writes of an operator; of an unknown one they are not known.
func (f *foreign) call(l *load, in *pte.Instruction) {
	_, sig, ok, err := l.Options.Operators.Lookup(f.method.Operators[in.Index].FullName())
	switch {
	case !ok || err != nil || len(in.Args) != sig.Slots():
		f.mark(perhaps, in.Args...)
		return
	case sig.Result != nil && sig.Result.Alias: // a view
		f.base[in.Args[len(in.Args)-1]] = f.base[in.Args[0]]
		return
	case f.method.Operators[in.Index].FullName() == "aten::copy_" && in.Args[0] == in.Args[1]:
		return
	}
	for i := range sig.Args {
		if sig.Args[i].Out || sig.Args[i].Mutated {
			f.mark(surely, in.Args[i])
		}
	}
}
