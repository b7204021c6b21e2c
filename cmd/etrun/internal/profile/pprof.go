package profile

import (
	"compress/gzip"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of the messages of a profile, see profile.proto of github.com/google/pprof.
const (
	profileTypes, profileSamples, profileLocations, profileFunctions, profileTexts = 1, 2, 4, 5, 6
	profileNanos, profileComments, profileDefault                                  = 10, 13, 14
)

// WritePprof writes profiles for go tool pprof: a sample for each instruction and node,
// whose stack is the node, its operator or delegate, and the method. Values are medians and
// maxima of the time in a run, in nanoseconds, and calls.
func WritePprof(w io.Writer, profiles []*Profile) error {
	b := &pprofWriter{texts: map[string]uint64{"": 0}, list: []string{""}, places: make(map[string]uint64)}
	for _, v := range [][2]string{{"median", "nanoseconds"}, {"max", "nanoseconds"}, {"calls", "count"}} {
		b.message(profileTypes, numbers(nil, 1, b.text(v[0]), 2, b.text(v[1])))
	}
	nanos := uint64(0)
	for _, p := range profiles {
		nanos += uint64(p.Median)
		b.out = numbers(b.out, profileComments, b.text(fmt.Sprintf("method %s: medians and maxima of %d runs", p.Method, p.Runs)))
		for i := range p.Rows {
			b.row(p.Method, &p.Rows[i])
		}
	}
	b.out = numbers(b.out, profileNanos, nanos, profileDefault, b.text("median"))
	for _, text := range b.list {
		b.message(profileTexts, []byte(text))
	}
	z := gzip.NewWriter(w)
	if _, err := z.Write(b.out); err != nil {
		return err
	}
	return z.Close()
}

// pprofWriter makes one text, and one location with its function, per name. Their messages refer to them by numbers.
type pprofWriter struct {
	out           []byte
	texts, places map[string]uint64
	list          []string
}

// message adds a message to the profile.
func (b *pprofWriter) message(field protowire.Number, body []byte) {
	b.out = protowire.AppendBytes(protowire.AppendTag(b.out, field, protowire.BytesType), body)
}

// numbers appends fields and their numbers to a message.
func numbers(out []byte, list ...uint64) []byte {
	for i := 0; i < len(list); i += 2 {
		out = protowire.AppendVarint(protowire.AppendTag(out, protowire.Number(list[i]), protowire.VarintType), list[i+1])
	}
	return out
}

// text returns the number of a text.
func (b *pprofWriter) text(s string) uint64 {
	n, known := b.texts[s]
	if !known {
		n = uint64(len(b.list))
		b.texts[s], b.list = n, append(b.list, s)
	}
	return n
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
	var body []byte
	for _, name := range stack {
		body = numbers(body, 1, b.location(name))
	}
	body = numbers(body, 2, uint64(r.Median), 2, uint64(r.Max), 2, uint64(r.Calls))
	if place := at.Place(); place != "" {
		label := numbers(nil, 1, b.text("instruction"), 2, b.text(place))
		body = protowire.AppendBytes(protowire.AppendTag(body, 3, protowire.BytesType), label)
	}
	b.message(profileSamples, body)
}

// location returns the number of a location, which is also that of its function.
func (b *pprofWriter) location(name string) uint64 {
	id := b.places[name]
	if id == 0 {
		id = uint64(len(b.places) + 1)
		b.places[name] = id
		line := numbers(nil, 1, id)
		b.message(profileFunctions, numbers(nil, 1, id, 2, b.text(name), 3, b.text(name)))
		b.message(profileLocations, protowire.AppendBytes(protowire.AppendTag(numbers(nil, 1, id), 4, protowire.BytesType), line))
	}
	return id
}
