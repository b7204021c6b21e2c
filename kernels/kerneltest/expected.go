package kerneltest

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/etrun-go/etrun/kernels"
)

var (
	//go:embed testdata/pytorch.txt
	pytorchText string
	//go:embed testdata/defined.txt
	definedText string

	// expected are calls with results that were made elsewhere, by operator.
	expected = sync.OnceValue(func() map[string][]expectedCall {
		m := make(map[string][]expectedCall)
		for line := range strings.Lines(pytorchText + definedText) {
			c, err := parseExpected(strings.TrimSpace(line))
			if err != nil {
				panic(err) // an error in the embedded lists
			}
			m[c.op] = append(m[c.op], c)
		}
		return m
	})
)

// expectedCall is a call in the form of [ParseCall], whose outs have the expected elements, and behind " = " the
// arguments that it updates and its result.
type expectedCall struct {
	text          string
	op            string
	args, results []any
}

func parseExpected(line string) (c expectedCall, err error) {
	c.text = line
	line, results, ok := strings.Cut(line, ") = ")
	if ok {
		line += ")"
		if _, c.results, err = ParseCall("results(" + results + ")"); err != nil {
			return c, err
		}
	}
	c.op, c.args, err = ParseCall(line)
	return c, err
}

// of makes the call a case of its operator.
func (c *expectedCall) of(sig *kernels.Signature) (Case, error) {
	outs := 0
	for _, a := range sig.Args {
		if a.Out {
			outs++
		}
	}
	if len(c.args) != len(sig.Args) {
		return Case{}, fmt.Errorf("expected call with %d arguments, the schema has %d: %s", len(c.args), len(sig.Args), c.text)
	}
	from := len(c.args) - outs
	want := append(append([]any{}, c.results...), c.args[from:]...)
	return Case{Name: c.op, Op: c.op, Args: c.args[:from], Outs: c.args[from:], Want: want}, nil
}

// expectedCases are the calls of an operator with results that were made elsewhere: those of the embedded lists, and more
// of the caller.
func expectedCases(name string, sig *kernels.Signature, more []Case) (cases []Case, err error) {
	for _, c := range expected()[name] {
		made, err := c.of(sig)
		if err != nil {
			return nil, err
		}
		cases = append(cases, made)
	}
	for _, c := range more {
		if c.Op == name && len(c.Want) > 0 {
			cases = append(cases, c)
		}
	}
	if len(cases) == 0 {
		err = errors.New("no expected value that was made elsewhere: pass Table a Case with Want, or add a line to kernels/kerneltest/testdata/defined.txt")
	}
	return cases, err
}

// checkExpected runs the calls of an operator with expected results.
func checkExpected(set *kernels.Set, name string, sig *kernels.Signature, more []Case) error {
	cases, err := expectedCases(name, sig, more)
	if err != nil {
		return err
	}
	for i := range cases {
		if err := cases[i].check(set, kernels.NewCtx(nil)); err != nil {
			return err
		}
	}
	return nil
}
