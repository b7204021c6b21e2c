package compile

import (
	"fmt"
	"maps"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/prepare"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/tree"
)

// writer builds the tree of the lowered program in place of the original one.
type writer struct {
	spec      *pte.Program
	file      *tree.File
	fileBytes int64  // with data files
	bytesIn   []byte // of the original program
	pool      *cpu.Pool
	options   *Options
	constants *constants
	plans     []*tree.Node // execution plans of the result
	segments  segments     // of the result
	bySegment map[int]int  // segments of the original program to those of the result
	byBytes   map[digest]int
	lowered   []*prepare.InFile // by method, nil for those that are kept
	weights   map[string]int    // keys of weights that several payloads have, to their segments
	known     map[string]bool   // keys of such weights that are named data of the original program already
	quantized map[at]*lowering.Quantized
	embeds    func(name string) bool // see QuantizeOptions.Embeds
	lost      map[string]bool        // keys of named data that the result does not have
	external  *external              // nil: the program has its constants
}

// data is the named data of a program and its data files.
type data struct {
	named func(key string) ([]byte, bool) // of data files, nil for none
	own   map[string][]byte
}

// Named implements delegate.NamedData.
func (d *data) Named(key string) ([]byte, bool) {
	b, ok := d.own[key]
	if !ok && d.named != nil {
		return d.named(key)
	}
	return b, ok
}

// TensorData implements prepare.Data.
func (d *data) TensorData(t *pte.Tensor) ([]byte, bool, error) {
	b, ok := d.Named(t.Name)
	if ok && int64(len(b)) != t.NBytes() {
		return nil, false, fmt.Errorf("external data %.100q has %d bytes, the tensor %d: %w", t.Name, len(b), t.NBytes(), pte.ErrFormat)
	}
	return b, ok, nil
}

// nodes returns a list of tables, nil if it is absent.
func nodes(n *tree.Node, field string) []*tree.Node {
	list, _ := n.Fields[field].([]*tree.Node)
	return list
}

// scalar returns a scalar field, 0 if it is absent.
func scalar(n *tree.Node, field string) uint64 {
	v, _ := n.Fields[field].(tree.Scalar)
	return uint64(v)
}

// copied returns a table with the same fields.
func copied(n *tree.Node) *tree.Node {
	c := tree.New(n.Type)
	maps.Copy(c.Fields, n.Fields)
	return c
}

// at is a delegate of a method.
type at struct{ method, delegate int }

func (w *writer) argSpec(m *pte.Method, v int) *delegate.ArgSpec {
	t := m.Values[v].Tensor
	if m.Values[v].Kind != tensor.KindTensor {
		return nil
	}
	a := &delegate.ArgSpec{Value: v, DType: t.DType, Sizes: t.Sizes, DimOrder: t.DimOrder, Dynamism: t.Dynamism}
	switch t.Storage {
	case pte.Constant:
		a.Const = t.Data
	case pte.External:
		a.Const, _, _ = (&data{w.options.Named, w.spec.Named}).TensorData(t)
	}
	return a
}
