package layers

import (
	"fmt"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// Inventory counts the values that methods compute, before they run.
type Inventory struct {
	operators map[string]int // values outside delegates, by operator and declared type
	outside   int
	inside    int // values of nodes inside delegates
	delegates int
}

// NewInventory returns an empty inventory.
func NewInventory() *Inventory { return &Inventory{operators: make(map[string]int)} }

// Add counts the values of a method. Loops count once.
func (v *Inventory) Add(m *etrun.Method) {
	method := m.Report().Plan.Method
	for i := range method.Steps {
		s := &method.Steps[i]
		if s.Kind != ir.KernelCall && s.Kind != ir.DelegateCall {
			continue
		}
		v.outside += len(s.Writes)
		for _, w := range s.Writes {
			if s.Kind == ir.KernelCall {
				v.operators[method.StepName(s)+" "+TypeName(&method.Values[w])]++
			}
		}
	}
	for _, d := range m.Delegates() {
		v.delegates++
		v.inside += len(d.Nodes)
	}
}

// TypeName formats the declared type and sizes of a value.
func TypeName(v *ir.Value) string {
	if v.Kind == tensor.KindTensor && v.Tensor != nil {
		return v.Tensor.DType.String() + " " + tensor.FormatSizes(v.Tensor.Sizes)
	}
	return v.Kind.String()
}

// String describes the inventory in words.
func (v *Inventory) String() string {
	s := cli.Count(v.outside, "value", "values")
	if v.delegates > 0 {
		s += fmt.Sprintf(", and %s in %s", cli.Count(v.inside, "node", "nodes"), cli.Count(v.delegates, "delegate", "delegates"))
	}
	return s
}

// Common returns how many values of a and b are of operators and types that both have equally often.
func Common(a, b *Inventory) (n int) {
	for k, x := range b.operators {
		if a.operators[k] == x {
			n += x
		}
	}
	return n
}
