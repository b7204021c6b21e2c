package grpc

import (
	_ "embed"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/etrun-go/etrun/serve/grpc/inference"
)

// standard is a FileDescriptorSet of the services that are not of this package: health and reflection.
//
//go:embed standard.binpb
var standard []byte

// described is a file of definitions that clients ask for.
type described struct {
	name, scope string // of the file, and of its package
	parts       map[string]bool
	data        []byte
}

// files are all.
var files = describe(field(standard, 1, inference.Definition))

// describe reads a set of files.
func describe(set []byte) (list []described) {
	_ = fields(set, func(_ protowire.Number, _, value []byte) error { // the set is well-formed
		list = append(list, describeFile(value))
		return nil
	})
	return list
}

// describeFile reads a FileDescriptorProto.
func describeFile(data []byte) described {
	d := described{parts: make(map[string]bool), data: data}
	_ = fields(data, func(n protowire.Number, _, value []byte) error {
		switch n {
		case 1:
			d.name = string(value)
		case 2:
			d.scope = string(value) + "."
		case 4, 5, 6: // messages, enumerations, services: their first field is the name
			name, _ := protowire.ConsumeBytes(value[1:])
			d.parts[string(name)] = true
		}
		return nil
	})
	return d
}

// has reports whether a file defines a name, or what it is in.
func (d *described) has(symbol string) bool {
	rest, ok := strings.CutPrefix(symbol, d.scope)
	part, _, _ := strings.Cut(rest, ".")
	return ok && d.parts[part]
}

// reflect answers a stream of questions for definitions.
func (h *handler) reflect(x *exchange) error {
	return h.stream(x, func(data []byte) error {
		a := reflected{question: data}
		err := fields(data, func(n protowire.Number, _, value []byte) error {
			if n > 1 { // 1 is the name of a host
				a.kind, a.text = n, string(value)
			}
			return nil
		})
		if err != nil {
			return err
		}
		return x.send(&a)
	})
}

// reflected is a ServerReflectionResponse.
type reflected struct {
	question []byte
	kind     protowire.Number // of the question
	text     string
}

// Kinds of questions.
const (
	fileByName protowire.Number = iota + 3
	fileWithSymbol
	fileWithExtension
	extensions
	services
)

// append implements message.
func (a *reflected) append(dst []byte) []byte {
	dst = field(dst, 2, string(a.question))
	switch a.kind {
	case services:
		var list []byte
		for _, name := range names {
			list = field(list, 1, string(field(nil, 1, name)))
		}
		return field(dst, 6, string(list))
	case fileByName, fileWithSymbol:
		for i := range files {
			if d := &files[i]; a.kind == fileByName && d.name == a.text || a.kind == fileWithSymbol && d.has(a.text) {
				return field(dst, 4, string(field(nil, 1, string(d.data))))
			}
		}
	case extensions:
		for i := range files {
			if files[i].has(a.text) { // no message has extensions
				return field(dst, 5, string(field(nil, 1, a.text)))
			}
		}
	}
	const notFound = 5
	failed := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), notFound)
	return field(dst, 7, string(field(failed, 2, "not found: the services are "+strings.Join(names, ", "))))
}
