package kerneltest

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var (
	//go:embed testdata/classes.txt
	classesText string

	// definitions are calls with results that define the classes.
	definitions = sync.OnceValue(func() map[opclass.Class][]expectedCall {
		byName, calls := make(map[string]opclass.Class), make(map[opclass.Class][]expectedCall)
		for c := range opclass.Count {
			byName[c.String()] = c
		}
		for line := range strings.Lines(classesText) {
			call, err := parseExpected(strings.TrimSpace(line))
			c, ok := byName[call.op]
			if err != nil || !ok {
				panic(fmt.Sprintf("class %q, %v", call.op, err)) // an error in the embedded list
			}
			calls[c] = append(calls[c], call)
		}
		return calls
	})
)

// checkClass checks that an operator computes the function of its class, and that one without a class computes none of
// those that passes know.
func checkClass(set *kernels.Set, op *kernels.Op, sig *kernels.Signature) error {
	if op.Class != opclass.None {
		if err := belongs(set, sig, op.Class); err != nil {
			return fmt.Errorf("not of class %v, as its row says: %w", op.Class, err)
		}
		return nil
	}
	for c := range opclass.Count {
		if c != opclass.None && c.Accepts(inputTypes(sig)) && belongs(set, sig, c) == nil {
			return fmt.Errorf("the function of class %v: its row needs Class", c)
		}
	}
	return nil
}

// inputTypes returns the types of the arguments before the outs.
func inputTypes(sig *kernels.Signature) (types []string) {
	for _, a := range sig.Args {
		if a.Mutated {
			return []string{"updated in place"} // no class has such operators
		}
		if !a.Out {
			types = append(types, a.Type)
		}
	}
	return types
}

// belongs reports why an operator does not compute the results of all calls that define a class and have its arguments.
func belongs(set *kernels.Set, sig *kernels.Signature, c opclass.Class) error {
	defined := false
	for i := range definitions()[c] {
		call := &definitions()[c][i]
		args, outs := completed(sig, call.args)
		if args == nil || outs != len(call.results) {
			continue
		}
		if err := computes(set, &Case{Name: call.op, Op: sig.Name, Args: args, Want: call.results}); err != nil {
			return fmt.Errorf("%s: %w", call.text, err)
		}
		defined = true
	}
	if !defined {
		return errors.New("no call in testdata/classes.txt defines it for these arguments")
	}
	return nil
}

// completed returns the arguments of a call with those that an operator has in addition, nil if it has others.
func completed(sig *kernels.Signature, from []any) (args []any, outs int) {
	args = append([]any{}, from...)
	for i, a := range sig.Args {
		switch {
		case a.Out:
			outs++
		case i < len(from):
		case a.Optional:
			args = append(args, nil)
		case a.Type == "bool":
			args = append(args, false)
		default:
			return nil, 0
		}
	}
	if len(args)+outs != len(sig.Args) || !fits(sig, args) {
		return nil, 0
	}
	return args, outs
}

// fits reports whether arguments have the kinds of a schema.
func fits(sig *kernels.Signature, args []any) bool {
	for i, a := range args {
		kind := tensor.KindTensor
		switch a.(type) {
		case nil:
			kind = tensor.None
		case *tensor.Tensor:
		case []*tensor.Tensor:
			kind = tensor.KindTensorList
		default:
			v, err := scalarValue(a)
			if err != nil {
				return false
			}
			kind = v.Kind
		}
		if arg := &sig.Args[i]; !arg.Kinds.Has(kind) && !(arg.Optional && kind == tensor.None) {
			return false
		}
	}
	return true
}

// computes checks the results of a call.
func computes(set *kernels.Set, call *Case) error {
	k, err := call.call(set)
	if err != nil {
		return err
	}
	refused, broken := k.run(kernels.NewCtx(nil))
	if broken != nil {
		return broken
	}
	return call.verdict(k, refused)
}
