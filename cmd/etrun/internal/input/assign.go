package input

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/npy"
)

// source is what one input is made of.
type source struct {
	spec  *Spec
	array *npy.Array // of an archive
}

// assignment collects the slots' sources.
type assignment struct {
	slots   []etrun.ValueMeta
	sources []source // a nil spec: not yet given
	next    int      // no free slot before this
}

// assign gives each slot its source: named arguments first, then the others in
// order, each archive spreading over as many slots as it has arrays.
func (r *Resolver) assign(ctx context.Context, specs []Spec, slots []etrun.ValueMeta) ([]source, error) {
	a := &assignment{slots: slots, sources: make([]source, len(slots))}
	for _, named := range []bool{true, false} {
		for i := range specs {
			if s := &specs[i]; (s.Input != "") == named {
				if err := r.place(ctx, a, s); err != nil {
					return nil, err
				}
			}
		}
	}
	for i, src := range a.sources {
		if src.spec == nil {
			return nil, &Error{Index: i, Name: slots[i].Name, Reason: ErrMismatch, Err: fmt.Errorf("missing, want %s", want(slots[i]))}
		}
	}
	return a.sources, nil
}

// place finds the slots of one argument.
func (r *Resolver) place(ctx context.Context, a *assignment, s *Spec) error {
	if s.Source != Archive {
		return a.put(s.Input, source{spec: s})
	}
	arrays, err := r.archive(ctx, s)
	if err != nil {
		return err
	}
	if s.Input != "" && len(arrays) != 1 {
		return fmt.Errorf("%w: %s: %d arrays for one input", ErrMismatch, s.Text, len(arrays))
	}
	byName := s.Input == "" && !slices.ContainsFunc(arrays, func(x *npy.Array) bool { return a.find(arrayInput(x.Name)) < 0 })
	for _, x := range arrays {
		name := s.Input
		if byName {
			name = arrayInput(x.Name)
		}
		if err := a.put(name, source{s, x}); err != nil {
			return err
		}
	}
	return nil
}

var numbered = regexp.MustCompile(`^(?:arr|arg|args|in|input)_?([0-9]+)$`)

// arrayInput is the input that an array's name stands for: NumPy's own arr_0 and
// its like count inputs, any other is a name.
func arrayInput(name string) string {
	if m := numbered.FindStringSubmatch(name); m != nil {
		return m[1]
	}
	return name
}

// find is the slot of that index or name, -1 if there is none.
func (a *assignment) find(name string) int {
	if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(a.slots) {
		return i
	}
	return slices.IndexFunc(a.slots, func(s etrun.ValueMeta) bool { return s.Name == name && name != "" })
}

// put gives the slot called name, or the next free one, its source.
func (a *assignment) put(name string, src source) error {
	at := a.find(name)
	switch {
	case name == "":
		at = a.nextFree()
		if at == len(a.slots) {
			return fmt.Errorf("%w: %s: one input too many, the method has %d", ErrMismatch, src.spec.Text, at)
		}
	case at < 0:
		return fmt.Errorf("%w %q: no input %q; %s", ErrSpec, src.spec.Text, name, a.names())
	case a.sources[at].spec != nil:
		return fmt.Errorf("%w: input %d given twice, by %s and %s", ErrMismatch, at, a.sources[at].spec.Text, src.spec.Text)
	}
	a.sources[at] = src
	return nil
}

func (a *assignment) nextFree() int {
	for a.next < len(a.slots) && a.sources[a.next].spec != nil {
		a.next++
	}
	return a.next
}

func (a *assignment) names() string {
	text := fmt.Sprintf("the method has %d", len(a.slots))
	for i, s := range a.slots {
		if s.Name != "" {
			text += fmt.Sprintf(", %d is %q", i, s.Name)
		}
	}
	return text
}
