package xnnpack

import (
	"encoding/binary"
	"slices"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/internal/flatbuf"
)

// ID is the name that identifies the backend in programs.
const ID = "XnnpackBackend"

// A payload header consists of 4 zero bytes, "XH00", u16 length, u32 flatbuffer offset and size,
// u32 constant data offset, u64 constant data size.
const (
	headerSize  = 30
	headerMagic = "XH00"
	maxArgs     = 4096
	ordinary    = 4096 // largest initial capacity of values and nodes
)

// identifiers of the FlatBuffer. The older schema has all fields that the reader uses.
var identifiers = []string{"XN01", "XN00"}

// reader converts a payload to a graph.
type reader struct {
	graph     *graph
	flat      *flatbuf.Reader
	named     delegate.NamedData
	constants []byte // constant data inside the payload
	byID      map[uint32]int
	table     constantTable
	views     map[int]int  // float values that nodes read quantized, and their quantized views
	viewed    map[int]bool // views whose nodes have been added
	lost      []int        // external IDs that no value has
}

func payloadError(place, format string, args ...any) error {
	return delegate.Errorf(ID, delegate.ErrPayload, place, format, args...)
}

func unsupported(place, format string, args ...any) error {
	return delegate.Errorf(ID, delegate.ErrUnsupported, place, format, args...)
}

// readPayload parses and checks a payload. The graph shares the bytes of the payload and of the
// constants that it names. If repair is set, known faults of exporters are repaired.
func readPayload(p *delegate.Payload, repair bool) (*graph, error) {
	flat, base, constants, err := splitHeader(p.Data)
	if err != nil {
		return nil, err
	}
	version := flatbuf.Identifier(flat)
	if len(version) == 4 && version[:2] == "XN" && version > identifiers[0] {
		return nil, unsupported("identifier", "%q, the newest known is %q: written by a newer exporter; export with an older ExecuTorch, or update etrun",
			version, identifiers[0])
	}
	if !slices.Contains(identifiers, version) {
		return nil, payloadError("identifier", "got %q, want one of %q", version, identifiers)
	}
	r := &reader{graph: &graph{Version: version, mayRepair: repair, specs: p.Args}, flat: flatbuf.New(flat, base, 0), named: p.Named,
		constants: constants, byID: make(map[uint32]int), views: make(map[int]int), viewed: make(map[int]bool)}
	root := r.flat.Root()
	if err := r.read(root); err != nil {
		return nil, inPayload(err)
	}
	r.graph.static = r.graph.areFixed(p.Args)
	return r.graph, nil
}

// areFixed reports whether arguments always have the sizes that the graph declares.
func (g *graph) areFixed(args []*delegate.ArgSpec) bool {
	if len(args) == 0 || len(args) != len(g.Args) || !areStatic(args) {
		return false
	}
	for i, v := range g.Args[:g.Inputs] {
		a, declared := args[i], g.Values[v].Shape
		if len(a.Sizes) > xnn.MaxDims || len(a.DimOrder) > len(a.Sizes) {
			return false
		}
		s := shapeOf(a.Sizes...)
		for j, d := range a.DimOrder {
			if int(d) >= len(a.Sizes) {
				return false
			}
			s.dim[j] = a.Sizes[d]
		}
		if s.squeezed() != declared.squeezed() {
			return false
		}
	}
	return true
}

// splitHeader returns the FlatBuffer, its offset, and the constant data. A payload without a header
// is a FlatBuffer as a whole.
func splitHeader(data []byte) (flat []byte, base int64, constants []byte, err error) {
	if len(data) < headerSize || string(data[4:8]) != headerMagic {
		return data, 0, nil, nil
	}
	le := binary.LittleEndian
	if n := le.Uint16(data[8:]); n < headerSize {
		return nil, 0, nil, payloadError("header", "length %d, want at least %d", n, headerSize)
	}
	flat, err = cut(data, "flatbuffer", uint64(le.Uint32(data[10:])), uint64(le.Uint32(data[14:])))
	if err != nil {
		return nil, 0, nil, err
	}
	if n := le.Uint64(data[22:]); n > 0 {
		constants, err = cut(data, "constant data", uint64(le.Uint32(data[18:])), n)
	}
	return flat, int64(le.Uint32(data[10:])), constants, err
}

// cut returns a part of the payload after its header.
func cut(data []byte, what string, offset, size uint64) ([]byte, error) {
	n := uint64(len(data))
	if offset < headerSize || offset > n || size > n-offset {
		return nil, payloadError("header", "%s of %d bytes at %d, the payload has %d", what, size, offset, n)
	}
	return data[offset : offset+size : offset+size], nil
}

// flatError returns the error of the FlatBuffer reader, if there is one.
func (r *reader) flatError() error {
	if err := r.flat.Err(); err != nil {
		return &delegate.Error{Backend: ID, Reason: delegate.ErrPayload, Err: err}
	}
	return nil
}

// read reads the root, table XNNGraph.
func (r *reader) read(root flatbuf.Table) error {
	externs := root.Uint32(3, "num_externs", 0)
	r.table.read(root)
	if err := r.flatError(); err != nil {
		return err
	}
	if externs > maxArgs {
		return payloadError("num_externs", "got %d, at most %d", externs, maxArgs)
	}
	r.graph.Values = make([]value, 0, min(root.Vector(2, "xvalues", 4).Len(), ordinary))
	r.graph.Nodes = make([]node, 0, min(root.Vector(1, "xnodes", 4).Len(), ordinary))
	if err := r.each(root, 2, "xvalues", r.readValue); err != nil {
		return err
	}
	if err := r.collectArgs(int(externs)); err != nil {
		return err
	}
	if err := r.each(root, 1, "xnodes", r.readNode); err != nil {
		return err
	}
	if err := r.repairWeights(); err != nil {
		return err
	}
	if err := r.repairOutputs(); err != nil {
		return err
	}
	return r.graph.checkOrder()
}

// each reads the tables of a vector in order, until there is an error.
func (r *reader) each(root flatbuf.Table, field int, name string, read func(i int, t flatbuf.Table) error) (err error) {
	i := 0
	flatbuf.Each(root, field, name, func(t flatbuf.Table) {
		if err == nil {
			err = read(i, t)
		}
		i++
	})
	if fault := r.flatError(); fault != nil {
		return fault
	}
	return err
}

// collectArgs sorts the external values by external ID, which is the index of the call's argument:
// inputs first. The payload also has lists of value IDs, which are not needed.
func (r *reader) collectArgs(externs int) error {
	g := r.graph
	args := make([]int, externs)
	for i := range args {
		args[i] = none
	}
	for v := range g.Values {
		x := &g.Values[v]
		if x.Arg == none {
			continue
		}
		place := "value " + itoa(x.ID)
		if x.Arg >= externs {
			return payloadError(place, "external id %d of %d", x.Arg, externs)
		}
		if args[x.Arg] != none {
			return payloadError(place, "external id %d is value %d's too", x.Arg, g.Values[args[x.Arg]].ID)
		}
		args[x.Arg] = v
	}
	for i, v := range args {
		if v == none && !g.mayRepair {
			return lostArgument(i, externs)
		}
		if v == none {
			r.lost = append(r.lost, i)
			continue
		}
		if g.Values[v].Input {
			if g.Inputs != i {
				return payloadError("value "+itoa(g.Values[v].ID), "input with external id %d behind outputs", i)
			}
			g.Inputs++
		}
	}
	g.Args = args
	return nil
}

func lostArgument(i, externs int) error {
	return payloadError("num_externs", "no value has external id %d of %d", i, externs)
}

// checkOrder checks that every value is defined before it is read, that it is computed at most
// once, and that every output is computed.
func (g *graph) checkOrder() error {
	known := make([]bool, len(g.Values))
	for v := range g.Values {
		known[v] = g.Values[v].isConst() || g.Values[v].Input
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		for _, v := range n.In {
			if v != none && !known[v] {
				return payloadError(n.place(), "%s is read before it is computed", g.describe(v))
			}
		}
		for _, v := range n.Out {
			if known[v] {
				return payloadError(n.place(), "%s is computed although it is a constant, an input or another node's", g.describe(v))
			}
			known[v] = true
		}
	}
	for _, v := range g.Args {
		if !known[v] {
			return payloadError("value "+itoa(g.Values[v].ID), "output that no node computes")
		}
	}
	return nil
}
