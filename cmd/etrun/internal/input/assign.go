package input

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/internal/lazy"
)

// assignment collects the sources of the slots.
type assignment struct {
	slots   []etrun.ValueMeta
	sources []source // nil spec: not assigned
	next    int      // all slots before this are assigned
}

// assign assigns a source to each slot: named arguments first, then the others in order. An
// archive fills as many slots as it has arrays.
func (r *Resolver) assign(ctx context.Context, specs []Spec, slots []etrun.ValueMeta) ([]source, error) {
	a := &assignment{slots: slots, sources: make([]source, len(slots))}
	for _, named := range []bool{true, false} {
		for i := range specs {
			if s := &specs[i]; (s.Input != "") == named {
				if err := r.assignTo(ctx, a, s); err != nil {
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

// assignTo assigns one argument to its slots.
func (r *Resolver) assignTo(ctx context.Context, a *assignment, s *Spec) error {
	src := source{spec: s, kind: s.Source}
	if s.Path != "" {
		var err error
		if src.file, src.kind, err = r.open(ctx, s); err != nil {
			at := a.nextFree()
			if s.Input != "" {
				at = max(a.find(s.Input), 0)
			}
			return placed(err, at, "", s.Text)
		}
	}
	parts, names, err := r.parts(src)
	if err != nil {
		return err
	}
	if parts == nil {
		return a.put(s.Input, src)
	}
	if s.Input != "" && len(parts) != 1 {
		return fmt.Errorf("%w: %s: %d arrays for one input", ErrMismatch, s.Text, len(parts))
	}
	byName := s.Input == "" && !slices.ContainsFunc(names, func(name string) bool { return a.find(arrayInput(name)) < 0 })
	for i, part := range parts {
		name := s.Input
		if byName {
			name = arrayInput(names[i])
		}
		if err := a.put(name, part); err != nil {
			return err
		}
	}
	return nil
}

// parts splits an argument for several inputs into sources with names; nil for an argument
// for one input.
func (r *Resolver) parts(src source) (parts []source, names []string, err error) {
	s := src.spec
	switch src.kind {
	case Archive, Tensors:
		if s.Shape != nil {
			return nil, nil, fmt.Errorf("%w: %s: an archive already contains the types", ErrSpec, s.Text)
		}
		arrays, err := r.arrays(src)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %s: %w", reasonOf(err), s.Path, err)
		}
		parts = []source{}
		for _, x := range arrays {
			parts, names = append(parts, source{spec: s, kind: src.kind, array: x}), append(names, x.Name)
		}
	case JSON:
		text := []byte(s.Inline)
		if src.file != nil {
			if text, err = readAll(src.file, s.Path, max(r.Limit, 1)); err != nil {
				return nil, nil, fmt.Errorf("%w: %w", reasonOf(err), err)
			}
		}
		members, several, err := jsonMembers(text)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %s: %w", ErrFile, s.Text, err)
		}
		if !several {
			return []source{{spec: s, kind: JSON, json: text}}, []string{s.Input}, nil
		}
		parts = []source{}
		for _, m := range members {
			parts, names = append(parts, source{spec: s, kind: JSON, json: m.text}), append(names, m.name)
		}
	}
	return parts, names, nil
}

var numbered = lazy.Pattern(`^(?:arr|arg|args|in|input)_?([0-9]+)$`)

// arrayInput returns the input for an array's name: arr_0 and the like are indexes of
// inputs, other names are input names.
func arrayInput(name string) string {
	if m := numbered().FindStringSubmatch(name); m != nil {
		return m[1]
	}
	return name
}

// find returns the slot of an index or name, -1 if there is none.
func (a *assignment) find(name string) int {
	if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(a.slots) {
		return i
	}
	return slices.IndexFunc(a.slots, func(s etrun.ValueMeta) bool { return s.Name == name && name != "" })
}

// put assigns src to the slot name, or to the next free one.
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
		return fmt.Errorf("%w: input %d is set twice, by %s and %s", ErrMismatch, at, a.sources[at].spec.Text, src.spec.Text)
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
