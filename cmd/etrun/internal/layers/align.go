package layers

import (
	"fmt"
	"strconv"

	"github.com/etrun-go/etrun/cmd/etrun/internal/diff"
	"github.com/etrun-go/etrun/internal/lazy"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Pair is a value of a run with its counterpart in another run.
type Pair struct {
	A, B  *Written
	found *diff.Distance // of a pair that was found by value: in the order of elements in which it was found
}

// Distance measures B from A.
func (p *Pair) Distance(tol kernels.Tolerance) diff.Distance {
	if p.found != nil {
		return *p.found
	}
	return diff.Measure(p.B.Value, p.A.Value, tol)
}

// Same reports whether two programs differ only in the bytes of constants and delegates:
// then each value has a counterpart.
func Same(a, b *pte.Program) bool {
	if len(a.Methods) != len(b.Methods) {
		return false
	}
	for i := range a.Methods {
		if skeleton(&a.Methods[i]) != skeleton(&b.Methods[i]) {
			return false
		}
	}
	return true
}

// skeleton returns a method's description without constants.
func skeleton(m *pte.Method) string {
	b := fmt.Appendf(nil, "%q %v %v %v\n", m.Name, m.Inputs, m.Outputs, m.Operators)
	for i := range m.Values {
		v := &m.Values[i]
		b = fmt.Appendf(b, "%v %v", v.Kind, v.Items)
		if t := v.Tensor; t != nil {
			b = fmt.Appendf(b, " %v%v%v", t.DType, t.Sizes, t.DimOrder)
		}
		b = append(b, '\n')
	}
	for i := range m.Delegates {
		b = fmt.Appendf(b, "%q ", m.Delegates[i].ID)
	}
	for i := range m.Chains {
		b = fmt.Appendf(b, "%v\n", m.Chains[i].Instructions)
	}
	return string(b)
}

// key identifies a value and its counterpart.
type key struct {
	method                     string
	call, slot, output, round  int
	chain, instruction, number int // for a node
	text                       string
}

// keyBySlot is for two runs of one program with any lowering: a slot of the value table is
// the same value in both.
func keyBySlot(w *Written) key {
	if w.Node >= 0 {
		return key{method: w.Method, call: w.Call, output: w.Output, round: w.Round, slot: -1,
			chain: w.Chain, instruction: w.Instruction, number: w.Node, text: w.NodeName}
	}
	return key{method: w.Method, call: w.Call, slot: w.Slot, round: w.Round}
}

// keyByPlace is for stored values with the names of instructions.
func keyByPlace(w *Written) key {
	return key{call: w.Call, chain: w.Chain, instruction: w.Instruction, number: w.Node, output: w.Output, round: w.Round}
}

// alignSame pairs the values of two runs of the same program, in b's order.
func alignSame(a, b []Written) []Pair { return align(a, b, bySlot(a), bySlot(b)) }

// bySlot numbers the writes of each slot over all instructions that write it: the moves at
// the end of the branches of a condition write it once.
func bySlot(list []Written) []key {
	keys, seen := make([]key, len(list)), make(map[key]int)
	for i := range list {
		k := keyBySlot(&list[i])
		k.round = 0
		n := seen[k]
		seen[k]++
		k.round = n
		keys[i] = k
	}
	return keys
}

// AlignKept pairs stored values with those of a run.
func AlignKept(kept, b []Written) []Pair {
	keys := func(list []Written) []key {
		keys := make([]key, len(list))
		for i := range list {
			keys[i] = keyByPlace(&list[i])
		}
		return keys
	}
	return align(kept, b, keys(kept), keys(b))
}

func align(a, b []Written, ka, kb []key) (pairs []Pair) {
	at := make(map[key]int, len(a))
	for i := range a {
		at[ka[i]] = i
	}
	for i := range b {
		if k, ok := at[kb[i]]; ok {
			pairs = append(pairs, Pair{A: &a[k], B: &b[i]})
		}
	}
	return pairs
}

// fileName matches names of FileName and of export scripts; the operator is optional.
var fileName = lazy.Pattern(`^(?:(load|call\d+)_)?(\d+)_(\d+)(?:_node(\d+))?(?:_.*?)??(?:_r(\d+))?_(\d+)$`)

// ParseFileName parses the name of a stored value; ok is false for other names.
func ParseFileName(name string) (w Written, ok bool) {
	m := fileName().FindStringSubmatch(name)
	if m == nil {
		return w, false
	}
	number := func(text string, absent int) int {
		n, err := strconv.Atoi(text)
		if err != nil {
			return absent
		}
		return n
	}
	w.Place = Place{Chain: number(m[2], 0), Instruction: number(m[3], 0), Node: number(m[4], -1), Delegate: -1}
	w.Round, w.Output = number(m[5], 0), number(m[6], 0)
	switch {
	case m[1] == "load":
		w.Call = atLoad
	case m[1] != "":
		w.Call = number(m[1][len("call"):], 0)
	}
	return w, true
}
