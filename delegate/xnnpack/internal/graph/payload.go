package graph

import (
	"encoding/binary"
	"slices"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/internal/flatbuf"
)

// ReadPayload parses and checks a payload. The graph shares the bytes of the payload and of the
// constants that it names. If repair is set, known faults of exporters are repaired.
func ReadPayload(p *delegate.Payload, repair bool) (*Graph, error) {
	flat, base, constants, err := SplitHeader(p.Data)
	if err != nil {
		return nil, err
	}
	version := flatbuf.Identifier(flat)
	if len(version) == 4 && version[:2] == "XN" && version > Identifiers[0] {
		return nil, Unsupported("identifier", "%q, the newest known is %q: written by a newer exporter; export with an older ExecuTorch, or update etrun",
			version, Identifiers[0])
	}
	if !slices.Contains(Identifiers, version) {
		return nil, PayloadError("identifier", "got %q, want one of %q", version, Identifiers)
	}
	r := &Reader{graph: &Graph{Version: version, MayRepair: repair, specs: p.Args}, Flat: flatbuf.New(flat, base, 0), named: p.Named,
		constants: constants, byID: make(map[uint32]int), views: make(map[int]int), viewed: make(map[int]bool)}
	root := r.Flat.Root()
	if err := r.read(root); err != nil {
		return nil, InPayload(err)
	}
	r.graph.Static = r.graph.areFixed(p.Args)
	return r.graph, nil
}

// areFixed reports whether arguments always have the sizes that the graph declares.
func (g *Graph) areFixed(args []*delegate.ArgSpec) bool {
	if len(args) == 0 || len(args) != len(g.Args) || !AreStatic(args) {
		return false
	}
	for i, v := range g.Args[:g.Inputs] {
		a, declared := args[i], g.Values[v].Shape
		if len(a.Sizes) > xnn.MaxDims || len(a.DimOrder) > len(a.Sizes) {
			return false
		}
		s := ShapeOf(a.Sizes...)
		for j, d := range a.DimOrder {
			if int(d) >= len(a.Sizes) {
				return false
			}
			s.Dim[j] = a.Sizes[d]
		}
		if s.squeezed() != declared.squeezed() {
			return false
		}
	}
	return true
}

// SplitHeader returns the FlatBuffer, its offset, and the constant data. A payload without a header
// is a FlatBuffer as a whole.
func SplitHeader(data []byte) (flat []byte, base int64, constants []byte, err error) {
	if len(data) < headerSize || string(data[4:8]) != headerMagic {
		return data, 0, nil, nil
	}
	le := binary.LittleEndian
	if n := le.Uint16(data[8:]); n < headerSize {
		return nil, 0, nil, PayloadError("header", "length %d, want at least %d", n, headerSize)
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
		return nil, PayloadError("header", "%s of %d bytes at %d, the payload has %d", what, size, offset, n)
	}
	return data[offset : offset+size : offset+size], nil
}

// read reads the root, table XNNGraph.
func (r *Reader) read(root flatbuf.Table) error {
	externs := root.Uint32(3, "num_externs", 0)
	r.Table.Read(root)
	if err := r.FlatError(); err != nil {
		return err
	}
	if externs > MaxArgs {
		return PayloadError("num_externs", "got %d, at most %d", externs, MaxArgs)
	}
	r.graph.Values = make([]Value, 0, min(root.Vector(2, "xvalues", 4).Len(), ordinary))
	r.graph.Nodes = make([]Node, 0, min(root.Vector(1, "xnodes", 4).Len(), ordinary))
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
	r.graph.repairOrders()
	return r.graph.checkOrder()
}

// collectArgs sorts the external values by external ID, which is the index of the call's argument:
// inputs first. The payload also has lists of value IDs, which are not needed.
func (r *Reader) collectArgs(externs int) error {
	g := r.graph
	args := make([]int, externs)
	for i := range args {
		args[i] = None
	}
	for v := range g.Values {
		x := &g.Values[v]
		if x.Arg == None {
			continue
		}
		place := "value " + itoa(x.ID)
		if x.Arg >= externs {
			return PayloadError(place, "external id %d of %d", x.Arg, externs)
		}
		if args[x.Arg] != None {
			return PayloadError(place, "external id %d is value %d's too", x.Arg, g.Values[args[x.Arg]].ID)
		}
		args[x.Arg] = v
	}
	for i, v := range args {
		if v == None && !g.MayRepair {
			return lostArgument(i, externs)
		}
		if v == None {
			r.missing = append(r.missing, i)
			continue
		}
		if g.Values[v].Input {
			if g.Inputs != i {
				return PayloadError("value "+itoa(g.Values[v].ID), "input with external id %d behind outputs", i)
			}
			g.Inputs++
		}
	}
	g.Args = args
	return nil
}

func lostArgument(i, externs int) error {
	return PayloadError("num_externs", "no value has external id %d of %d", i, externs)
}

// checkOrder checks that every value is defined before it is read, that it is computed at most
// once, and that every output is computed.
func (g *Graph) checkOrder() error {
	known := make([]bool, len(g.Values))
	for v := range g.Values {
		known[v] = g.Values[v].IsConst() || g.Values[v].Input
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		for _, v := range n.In {
			if v != None && !known[v] {
				return PayloadError(n.Location(), "%s is read before it is computed", g.Describe(v))
			}
		}
		for _, v := range n.Out {
			if known[v] {
				return PayloadError(n.Location(), "%s is computed although it is a constant, an input or another node's", g.Describe(v))
			}
			known[v] = true
		}
	}
	for _, v := range g.Args {
		if !known[v] {
			return PayloadError("value "+itoa(g.Values[v].ID), "output that no node computes")
		}
	}
	return nil
}
