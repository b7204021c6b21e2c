package prepare

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Outline describes a method that may not be able to run here: operators without a kernel have a signature that follows
// from their calls, and delegates may have no image.
type Outline struct {
	IR      *ir.Method
	Missing map[string]bool  // operators without a kernel, by name
	Images  []delegate.Image // by delegate, nil for those that do not compile here
	Faults  []error          // by delegate: why

	own []delegate.Image
}

// Close closes the images that are the outline's own.
func (o *Outline) Close() {
	for _, img := range o.own {
		_ = img.Close() // it frees memory
	}
}

// Outline makes the stages up to the dataflow without the parts that are not available here. It uses the images of the
// method if it is loaded; else it compiles delegates, and releases no constant.
func (p *Preparation) Outline(ctx context.Context, r Reporter, loaded *Method) (*Outline, error) {
	l := &load{&Preparation{Source: p.Source}, r}
	defer l.sharedScratch().Close()
	links, err := l.find()
	missing, ok := errors.AsType[*MissingError](err)
	if err != nil && !ok {
		return nil, err
	} else if !ok {
		missing = &MissingError{}
	}
	o := &Outline{Missing: make(map[string]bool)}
	for _, m := range missing.Operators {
		o.Missing[m.Name] = true
	}
	l.guess(links.Operators)
	if loaded != nil {
		o.Images, o.Faults = loaded.Images[:len(l.Method.Delegates)], make([]error, len(l.Method.Delegates))
	} else {
		o.compile(ctx, l, l.delegateArgs(links))
	}
	for i, img := range o.Images {
		n := inputsOf(l.Method, i)
		if img != nil {
			n = img.Needs().Inputs
		}
		links.Delegates = append(links.Delegates, ir.Delegate{Inputs: n})
	}
	if o.IR, err = ir.Build(l.Method, links); err != nil {
		o.Close()
		return nil, err
	}
	return o, nil
}

// compile makes the images of the delegates that compile here.
func (o *Outline) compile(ctx context.Context, l *load, args [][]*delegate.ArgSpec) {
	survey := l.survey(args)
	for i := range l.Method.Delegates {
		var img delegate.Image
		err := survey
		backend, ok := l.Backends[l.Method.Delegates[i].ID]
		switch {
		case !ok:
			err = fmt.Errorf("backend %.100q: %w", l.Method.Delegates[i].ID, delegate.ErrMissing)
		case err == nil:
			payload := l.payload(i, args[i])
			payload.Limits = l.limits()
			img, err = backend.Compile(ctx, payload)
		}
		if err != nil {
			img = nil
		} else {
			l.files.needs, o.own = append(l.files.needs, img.Needs()), append(o.own, img)
		}
		o.Images, o.Faults = append(o.Images, img), append(o.Faults, err)
	}
}

// guess makes operators of those that have no kernel.
func (l *load) guess(operators []ir.Operator) {
	for c := range l.Method.Chains {
		for k := range l.Method.Chains[c].Instructions {
			in := &l.Method.Chains[c].Instructions[k]
			if in.Kind == pte.KernelCall && operators[in.Index].Op == nil {
				name := l.Method.Operators[in.Index].FullName()
				operators[in.Index] = ir.Operator{Op: &kernels.Op{Schema: name + "()"}, Sig: signatureOf(l.Method, name, in.Args), Own: true}
			}
		}
	}
}

// signatureOf returns the signature of an operator that only a call tells about. Exporters write the results last: the outs,
// which are the last arguments, a second time, several as a list; a result that is no argument is a value of its own. An
// operator whose name ends in an underscore updates what it returns.
func signatureOf(m *pte.Method, name string, args []int) *kernels.Signature {
	if len(args) == 0 {
		s, _ := kernels.ParseSchema("guess() -> ()") // it is well formed
		return s
	}
	s := &kernels.Signature{Name: name}
	last := args[len(args)-1]
	results := append([]int{last}, m.Values[last].Items...)
	base, _, _ := strings.Cut(name[strings.LastIndex(name, ":")+1:], ".")
	outs := false
	for i, v := range args[:len(args)-1] {
		a := kernels.Arg{Name: fmt.Sprintf("argument %d", i)}
		if slices.Contains(results, v) && m.Values[v].Kind == tensor.KindTensor && !constant(&m.Values[v]) {
			a.Mutated = strings.HasSuffix(base, "_")
			a.Out, outs = !a.Mutated, true
		}
		s.Args = append(s.Args, a)
	}
	for i := len(s.Args) - 2; i >= 0; i-- {
		if s.Args[i].Out && !s.Args[i+1].Out {
			s.Args[i].Out, s.Args[i].Mutated = false, true
		}
	}
	if !outs {
		s.Result = &kernels.Arg{Name: "result"}
	}
	return s
}

func constant(v *pte.Value) bool {
	return v.Kind == tensor.KindTensor && (v.Tensor.Storage == pte.Constant || v.Tensor.Storage == pte.External)
}

// inputsOf returns how many of a delegate's arguments come before the first that nothing has written at its first call.
func inputsOf(m *pte.Method, index int) int {
	written := make([]bool, len(m.Values))
	for _, v := range m.Inputs {
		written[v] = true
	}
	for c := range m.Chains {
		for _, in := range m.Chains[c].Instructions {
			if in.Kind == pte.DelegateCall && in.Index == index {
				k := slices.IndexFunc(in.Args, func(v int) bool {
					t := m.Values[v].Tensor
					return m.Values[v].Kind == tensor.KindTensor && !written[v] && !constant(&m.Values[v]) && t.Storage != pte.PlannedInit &&
						t.Storage != pte.ExternalPlanned
				})
				if k < 0 {
					return len(in.Args)
				}
				return k
			}
			for _, v := range in.Args {
				written[v] = true
			}
		}
	}
	return 0
}
