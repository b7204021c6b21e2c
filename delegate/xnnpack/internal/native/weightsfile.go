package native

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/cachefolder"
	"github.com/etrun-go/etrun/internal/openfile"
)

// A weights file stores the packed weights of a payload for later processes. Its name is a digest
// of all that they depend on: the constants (by their tags, see [graph.WeightsCache]), the graph, the library's
// sources, and the processor. All numbers are little-endian:
//
//	magic, u32 CRC-32C of the rest, u32 number of entries
//	entries: u32 seed, i32 kernel, i32 bias (values of the graph, -1 for none), u32 0,
//	         u64 offset from the file's start, u64 size
//	blocks at multiples of 64, and padding that vectors may read after the last one
const (
	weightsMagic  = "ETRUNXW1"
	weightsHeader = 16
	weightsEntry  = 32
	weightsAlign  = 64
)

// openFile reads the weights from a file, if it exists and is intact, so that later changes of the
// file have no effect. If mapped is set, it maps the file instead, and shares the memory with other
// processes. The checksum is computed from the bytes that are used.
func (w *weights) openFile(ctx context.Context, folder *os.Root, name string, g *graph.Graph, mapped bool) error {
	most := maxPacked(g)
	if w.limit > 0 {
		most = min(most, w.limit)
	}
	mapping, err := graph.MapWeights(ctx, folder, name, openfile.Rules{Limit: most, Start: len(weightsMagic), Check: checkMagic}, mapped)
	if err != nil {
		return err
	}
	if w.entries, err = parseWeights(mapping.Bytes(), g); err != nil {
		mapping.Close()
		return err
	}
	w.mapping = mapping
	return nil
}

func checkMagic(start []byte) error {
	if string(start) != weightsMagic {
		return errWeights
	}
	return nil
}

var errWeights = errors.New("damaged")

// parseWeights checks a file of packed weights and returns its entries.
func parseWeights(data []byte, g *graph.Graph) ([]entry, error) {
	le := binary.LittleEndian
	if len(data) < weightsHeader || string(data[:8]) != weightsMagic || le.Uint32(data[8:]) != graph.Checksum(data[12:]) {
		return nil, errWeights
	}
	n := uint64(le.Uint32(data[12:]))
	if n > uint64(len(data)-weightsHeader)/weightsEntry {
		return nil, errWeights
	}
	entries := make([]entry, n)
	for i := range entries {
		e := data[weightsHeader+i*weightsEntry:]
		kernel, ok1 := constantAddress(g, int32(le.Uint32(e[4:])))
		bias, ok2 := constantAddress(g, int32(le.Uint32(e[8:])))
		offset, size := le.Uint64(e[16:]), le.Uint64(e[24:])
		if !ok1 || !ok2 || offset%weightsAlign != 0 || size == 0 || offset > uint64(len(data)) || size+weightsAlign > uint64(len(data))-offset {
			return nil, errWeights
		}
		block := data[offset : offset+size : offset+size]
		entries[i] = entry{xnn.WeightsKey{Seed: le.Uint32(e), Kernel: kernel, Bias: bias}, xnn.AddressOf(block), block}
	}
	return entries, nil
}

func constantAddress(g *graph.Graph, v int32) (xnn.Address, bool) {
	if v == graph.None {
		return 0, true
	}
	if v < 0 || int(v) >= len(g.Values) || !g.Values[v].IsConst() {
		return 0, false
	}
	return xnn.AddressOf(g.Values[v].Data), true
}

func (w *weights) encode(g *graph.Graph) ([]byte, error) {
	values := map[xnn.Address]int32{0: graph.None}
	for v := range g.Values {
		if x := &g.Values[v]; x.IsConst() {
			values[xnn.AddressOf(x.Data)] = int32(v)
		}
	}
	le := binary.LittleEndian
	out := append([]byte(weightsMagic), make([]byte, weightsHeader-len(weightsMagic)+weightsEntry*len(w.entries))...)
	le.PutUint32(out[12:], uint32(len(w.entries)))
	places := make(map[xnn.Address]int)
	for i, e := range w.entries {
		kernel, ok1 := values[e.key.Kernel]
		bias, ok2 := values[e.key.Bias]
		if !ok1 || !ok2 {
			return nil, errors.New("weights that are not made of constants")
		}
		at, ok := places[e.at]
		if !ok {
			out = append(out, make([]byte, -len(out)&(weightsAlign-1))...)
			at = len(out)
			places[e.at] = at
			out = append(out, e.Data...)
		}
		head := out[weightsHeader+i*weightsEntry:]
		le.PutUint32(head, e.key.Seed)
		le.PutUint32(head[4:], uint32(kernel))
		le.PutUint32(head[8:], uint32(bias))
		le.PutUint64(head[16:], uint64(at))
		le.PutUint64(head[24:], uint64(len(e.Data)))
	}
	out = append(out, make([]byte, 2*weightsAlign)...)
	sealWeights(out)
	return out, nil
}

// sealWeights writes the checksum to the header of a file.
func sealWeights(file []byte) {
	binary.LittleEndian.PutUint32(file[8:], graph.Checksum(file[12:]))
}

// agrees reports whether packed equals the data of the entry.
func (e *entry) agrees(packed []byte) bool { return bytes.Equal(e.Data, packed) }

// writeFile stores the packed weights. The file appears complete or not at all.
func (w *weights) writeFile(folder *os.Root, name string, g *graph.Graph) error {
	data, err := w.encode(g)
	if err != nil {
		return err
	}
	return cachefolder.Replace(folder, name, data)
}

// maxPacked returns an upper bound for the size of a file of packed weights, computed from the
// graph's constants: channels are padded to the largest tiles, and each element and channel needs
// the largest number of bytes.
func maxPacked(g *graph.Graph) int64 {
	most := int64(weightsHeader + 2*weightsAlign)
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Type.Packs && g.Values[n.In[1]].IsConst() {
			most = graph.Plus(most, graph.Plus(maxPackedBytes(n, g.Values[n.In[1]].Shape), weightsEntry+2*weightsAlign))
		}
	}
	return most
}

func maxPackedBytes(n *graph.Node, s graph.Shape) int64 {
	const element, channel, kernels = 4, 32, 4 // in bytes; kernels for which one node may be packed
	if w := n.Window(); n.Type.Convolution {
		out := graph.Times(w.Groups, graph.RoundUp(w.GroupOut, tileOut))
		return graph.Times(kernels, int(graph.Times(int(out), w.KernelH*w.KernelW, graph.RoundUp(w.GroupIn, tileOut), element)+
			graph.Times(int(out), channel, 1+w.StrideH*w.StrideW)))
	}
	rows, columns := graph.RoundUp(s.FromEnd(1), tileOut), graph.RoundUp(s.FromEnd(0), tileOut)
	return graph.Times(kernels, s.Leading(s.Rank-2), rows*columns*element+channel*max(rows, columns))
}
