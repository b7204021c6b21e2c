package profile

import (
	"fmt"
	"io"

	pprof "github.com/google/pprof/profile"
)

// WritePprof writes profiles for go tool pprof: a sample for each instruction and node,
// whose stack is the node, its operator or delegate, and the method. Values are medians and
// maxima of the time in a run, in nanoseconds, and calls.
func WritePprof(w io.Writer, profiles []*Profile) error {
	b := &pprofWriter{locations: make(map[string]*pprof.Location)}
	b.out = &pprof.Profile{DefaultSampleType: "median",
		SampleType: []*pprof.ValueType{{Type: "median", Unit: "nanoseconds"}, {Type: "max", Unit: "nanoseconds"}, {Type: "calls", Unit: "count"}}}
	for _, p := range profiles {
		b.out.DurationNanos += int64(p.Median)
		b.out.Comments = append(b.out.Comments, fmt.Sprintf("method %s: medians and maxima of %d runs", p.Method, p.Runs))
		for i := range p.Rows {
			b.row(p.Method, &p.Rows[i])
		}
	}
	if err := b.out.CheckValid(); err != nil {
		return err
	}
	return b.out.Write(w)
}

// pprofWriter makes one location per name.
type pprofWriter struct {
	out       *pprof.Profile
	locations map[string]*pprof.Location
}

// row adds a row, or its parts.
func (b *pprofWriter) row(method string, r *Row) {
	if len(r.Parts) == 0 {
		b.sample(r, r, r.Name, method)
	}
	for i := range r.Parts {
		b.sample(&r.Parts[i], r, r.Parts[i].Name, r.Name, method)
	}
}

// sample adds the values of a row of an instruction; stack has the innermost name first.
func (b *pprofWriter) sample(r, at *Row, stack ...string) {
	s := &pprof.Sample{Value: []int64{int64(r.Median), int64(r.Max), int64(r.Calls)}}
	for _, name := range stack {
		s.Location = append(s.Location, b.location(name))
	}
	if place := at.Place(); place != "" {
		s.Label = map[string][]string{"instruction": {place}}
	}
	b.out.Sample = append(b.out.Sample, s)
}

func (b *pprofWriter) location(name string) *pprof.Location {
	l := b.locations[name]
	if l == nil {
		id := uint64(len(b.locations) + 1)
		f := &pprof.Function{ID: id, Name: name, SystemName: name}
		l = &pprof.Location{ID: id, Line: []pprof.Line{{Function: f}}}
		b.locations[name] = l
		b.out.Function = append(b.out.Function, f)
		b.out.Location = append(b.out.Location, l)
	}
	return l
}
