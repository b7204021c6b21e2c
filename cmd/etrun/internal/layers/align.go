package layers

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/etrun-go/etrun/runtime/pte"
)

// Pair is a value of a run with its counterpart in another.
type Pair struct{ A, B *Written }

// Same reports that two programs are the same but for the bytes of constants and of
// delegates: then each value of one has its counterpart in the other.
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

// skeleton is a method's text without constants.
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

// key is what a value and its counterpart have in common.
type key struct {
	method                     string
	call, slot, output, round  int
	chain, instruction, number int // of a node
	text                       string
}

// alone is the key of a value without a counterpart.
var alone = key{output: -1}

// keyBySlot is for two runs of one program, however it is lowered: a slot of the value
// table means the same in both.
func keyBySlot(w *Written) key {
	if w.Node >= 0 {
		return key{method: w.Method, call: w.Call, output: w.Output, round: w.Round, slot: -1,
			chain: w.Chain, instruction: w.Instruction, number: w.Node, text: w.NodeName}
	}
	return key{method: w.Method, call: w.Call, slot: w.Slot, round: w.Round}
}

// keyByPlace is for kept values that name their instruction.
func keyByPlace(w *Written) key {
	return key{call: w.Call, chain: w.Chain, instruction: w.Instruction, number: w.Node, output: w.Output, round: w.Round}
}

// Align pairs the values of two runs of programs that are the same, in b's order.
func Align(a, b []Written) []Pair { return align(a, b, bySlot(a), bySlot(b)) }

// bySlot numbers the writes of each slot through all instructions that write it: a move at
// the end of either branch of a condition writes the slot once.
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

// AlignKept pairs kept values with those of a run.
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

// AlignOther pairs values of programs that differ: those of operators outside delegates of
// which both have as many with the same name and the same result, one after the other.
func AlignOther(a, b []Written) []Pair {
	ka, na := bySignature(a)
	kb, nb := bySignature(b)
	for i := range kb {
		k := kb[i]
		if k.round = 0; na[k] != nb[k] {
			kb[i] = alone
		}
	}
	return align(a, b, ka, kb)
}

// bySignature are keys of operators and results, and how many values have each.
func bySignature(list []Written) (keys []key, count map[key]int) {
	keys, count = make([]key, len(list)), make(map[key]int)
	for i := range list {
		w := &list[i]
		if keys[i] = alone; w.Delegate >= 0 || w.Operator == "MoveCall" {
			continue
		}
		k := key{method: w.Method, call: w.Call, output: w.Output, text: w.Operator + " " + w.TypeName()}
		keys[i] = k
		keys[i].round = count[k]
		count[k]++
	}
	return keys, count
}

func align(a, b []Written, ka, kb []key) (pairs []Pair) {
	at := make(map[key]int, len(a))
	for i := range a {
		at[ka[i]] = i
	}
	for i := range b {
		if k, ok := at[kb[i]]; ok && kb[i] != alone {
			pairs = append(pairs, Pair{&a[k], &b[i]})
		}
	}
	return pairs
}

// fileName is what FileName writes, and what export scripts write: the name may be left out.
var fileName = regexp.MustCompile(`^(?:(load|call\d+)_)?(\d+)_(\d+)(?:_node(\d+))?(?:_.*?)??(?:_r(\d+))?_(\d+)$`)

// ParseFileName reads the place of a kept value; false is another name.
func ParseFileName(name string) (w Written, ok bool) {
	m := fileName.FindStringSubmatch(name)
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
		w.Call = AtLoad
	case m[1] != "":
		w.Call = number(m[1][len("call"):], 0)
	}
	return w, true
}
