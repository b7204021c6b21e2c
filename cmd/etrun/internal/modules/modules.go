// Package modules names the instructions and nodes of a program by the modules of the exported
// model: from the stack traces in the file, or from the ETRecord of its export.
package modules

import (
	"fmt"
	"path"
	"strings"

	"github.com/etrun-go/etrun/runtime/pte"
)

// Names names the instructions of one program. A nil *Names has no names.
type Names struct {
	chains map[string][]pte.Chain // by method
	record *Record                // nil for none
}

// New returns the names of a program's instructions; record may be nil. The error is a
// *RecordError if the record is of another program.
func New(program *pte.Program, record *Record) (*Names, error) {
	n := &Names{chains: make(map[string][]pte.Chain), record: record}
	for i := range program.Methods {
		n.chains[program.Methods[i].Name] = program.Methods[i].Chains
	}
	if record == nil {
		return n, nil
	}
	return n, record.fits(n.chains)
}

// Instruction names an instruction: the module that called it, as in "layers.0.conv (Conv2d)",
// else the line of the model's source, as in "net.py:7 forward", else "".
func (n *Names) Instruction(method string, chain, index int) string {
	if n == nil {
		return ""
	}
	if chain == 0 { // records number the instructions of the first chain
		if name := n.record.instruction(method, index); name != "" {
			return name
		}
	}
	chains := n.chains[method]
	if chain < 0 || chain >= len(chains) || index < 0 || index >= len(chains[chain].Stacks) {
		return ""
	}
	return source(chains[chain].Stacks[index])
}

// Node names a node inside a delegate by its debug handle, 0 for none.
func (n *Names) Node(method string, handle uint32) string {
	if n == nil || handle == 0 {
		return ""
	}
	return n.record.handles(method, []int{int(handle)})
}

// source returns the innermost line of a stack trace that is not PyTorch's own, empty for none.
func source(frames []pte.Frame) string {
	for i := len(frames) - 1; i >= 0; i-- {
		f := &frames[i]
		if f.File != "" && (i == 0 || !isTorch(f.File)) {
			return strings.TrimSpace(fmt.Sprintf("%s:%d %s", path.Base(f.File), f.Line, f.Name))
		}
	}
	return ""
}

// isTorch reports whether a source file belongs to an installed PyTorch.
func isTorch(file string) bool {
	return strings.Contains(file, "-packages/torch/") || strings.Contains(file, "/torch/nn/")
}
