package main

import (
	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun/cmd/etrun/internal/input"
)

// call is one execution: a method and its inputs.
type call struct {
	method string // empty: that of the call before, or forward
	inputs []input.Spec
}

// callList is the calls of one command line. Its flags depend on their order, so
// each records itself when it is parsed: --next begins a call, --method and --input
// belong to the last one begun.
type callList []call

func (l *callList) last() *call { return &(*l)[len(*l)-1] }

func (l *callList) addFlags(flags *pflag.FlagSet) {
	*l = callList{{}}
	flags.Var(onSet{"NAME", l.setMethod}, "method", `method to run (default "forward", for further calls that of the call before)`)
	flags.Var(onSet{"SPEC", l.addInput}, "input", "one input, in order; repeat for each (default: random elements)")
	flags.Var(onSet{"bool", l.next}, "next", "begin the inputs of a further call on the loaded program")
	flags.Lookup("next").NoOptDefVal = "true"
}

func (l *callList) setMethod(name string) error {
	if l.last().method != "" {
		return usage("a second method for one call; --next begins another")
	}
	l.last().method = name
	return nil
}

func (l *callList) addInput(text string) error {
	s, err := input.Parse(text)
	if err != nil {
		return err
	}
	l.last().inputs = append(l.last().inputs, s)
	return nil
}

func (l *callList) next(text string) error {
	if text != "true" {
		return usage("--next takes no value")
	}
	*l = append(*l, call{})
	return nil
}

// inherit gives each call without a method that of the call before.
func (l callList) inherit() {
	for i := 1; i < len(l); i++ {
		if l[i].method == "" {
			l[i].method = l[i-1].method
		}
	}
}

// given reports whether any call has inputs.
func (l callList) given() bool {
	for _, c := range l {
		if len(c.inputs) > 0 {
			return true
		}
	}
	return false
}

// onSet is a flag that acts when it is parsed.
type onSet struct {
	kind string
	act  func(string) error
}

func (f onSet) Set(text string) error { return f.act(text) }
func (f onSet) String() string        { return "" }
func (f onSet) Type() string          { return f.kind }
