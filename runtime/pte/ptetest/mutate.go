package ptetest

import (
	"bytes"
	"fmt"
	"github.com/etrun-go/etrun/runtime/pte/tree"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// Mutate changes n fields of a file at random, and returns the changed file and a list of the
// changes. The same seed makes the same changes. In a malformed file single bytes are changed.
func Mutate(data []byte, seed uint64, n int) ([]byte, []string) {
	r := rand.New(rand.NewPCG(seed, 0))
	f, err := Decode(data)
	if err != nil || r.IntN(8) == 0 {
		return mutateBytes(r, data, n)
	}
	log := make([]string, n)
	for i := range log {
		log[i] = mutateFile(f, r)
	}
	return f.Bytes(), log
}

// mutateBytes changes single bytes, half of them in the first 64.
func mutateBytes(r *rand.Rand, data []byte, n int) ([]byte, []string) {
	out, log := bytes.Clone(data), []string(nil)
	for range n {
		if len(out) == 0 {
			break
		}
		i := r.IntN(len(out))
		if r.IntN(2) == 0 {
			i = r.IntN(min(len(out), 64))
		}
		b := byte(r.UintN(256))
		log = append(log, fmt.Sprintf("byte %d: %#x to %#x", i, out[i], b))
		out[i] = b
	}
	return out, log
}

// site is a field of some node, stored or not.
type site struct {
	n *Node
	tree.Column
}

// sites lists the fields of the tree below n, and its nodes by type.
func sites(n *Node, list []site, nodes map[string][]*Node) []site {
	nodes[n.Type] = append(nodes[n.Type], n)
	for _, c := range tree.Tables[n.Type] {
		list = append(list, site{n, c})
		switch v := n.Fields[c.Name].(type) {
		case *Node:
			list = sites(v, list, nodes)
		case []*Node:
			for _, x := range v {
				list = sites(x, list, nodes)
			}
		}
	}
	return list
}

// mutateFile changes one field of the tree at random, and describes the change.
func mutateFile(f *File, r *rand.Rand) string {
	nodes := map[string][]*Node{}
	all := sites(f.Root, nil, nodes)
	s := all[r.IntN(len(all))]
	old := s.n.Fields[s.Name]
	if old != nil && r.IntN(8) == 0 {
		delete(s.n.Fields, s.Name)
		return fmt.Sprintf("%s.%s: dropped", s.n.Type, s.Name)
	}
	s.n.Fields[s.Name] = mutateField(r, s, old, nodes)
	return fmt.Sprintf("%s.%s: %s to %s", s.n.Type, s.Name, show(old), show(s.n.Fields[s.Name]))
}

func show(v any) string {
	switch v := v.(type) {
	case *Node:
		return v.Type
	case []*Node:
		return fmt.Sprintf("%d tables", len(v))
	}
	return fmt.Sprintf("%.80v", v)
}

// mutateField returns new contents for a field; old is nil if it is not stored.
func mutateField(r *rand.Rand, s site, old any, nodes map[string][]*Node) any {
	elem, isList := tree.Element(s.Type)
	switch {
	case tree.Width[s.Type] > 0:
		v, _ := old.(Scalar)
		return mutateScalar(r, v)
	case s.Type == "string":
		v, _ := old.(string)
		return pick(r, "", "\xff\xfe", v+"\x00"+v, strings.Repeat("long ", 100), v[:len(v)/2])
	case tree.ByteAlign[s.Type] > 0:
		v, _ := old.([]byte)
		return mutateList(r, v, func(b byte) byte { return byte(mutateScalar(r, Scalar(b))) })
	case isList && tree.Width[elem] > 0:
		v, _ := old.([]Scalar)
		return mutateList(r, v, func(x Scalar) Scalar { return mutateScalar(r, x) })
	case isList:
		v, _ := old.([]*Node)
		return mutateList(r, v, func(*Node) *Node { return someNode(r, elem, nodes) })
	case tree.Unions[s.Type] != nil:
		return someNode(r, pick(r, tree.Unions[s.Type][1:]...), nodes)
	}
	return someNode(r, s.Type, nodes)
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// mutateScalar returns a value near the old one, or at a limit of some type.
func mutateScalar(r *rand.Rand, old Scalar) Scalar {
	const minInt32, minInt64 = 1 << 31, 1 << 63
	return pick(r, 0, 1, 2, old+1, old-1, old*2, old^1<<r.IntN(64), math.MaxUint64, 127, 128, 255, 256,
		math.MaxInt32, minInt32, math.MaxUint32, math.MaxUint32+1, math.MaxInt64, minInt64, math.MaxUint64-7)
}

// mutateList returns a copy of the list after an element was changed, dropped, doubled, added or
// exchanged, or an empty list.
func mutateList[T any](r *rand.Rand, old []T, change func(T) T) []T {
	var zero T
	out := slices.Clone(old)
	if len(out) == 0 {
		return []T{change(zero)}
	}
	i, j := r.IntN(len(out)), r.IntN(len(out))
	switch r.IntN(6) {
	case 0:
		return slices.Delete(out, i, i+1)
	case 1:
		return slices.Insert(out, j, out[i])
	case 2:
		out[i], out[j] = out[j], out[i]
	case 3:
		return []T{}
	default:
		out[i] = change(out[i])
	}
	return out
}

// someNode returns a node of the type: one of the tree, which is then shared, a changed copy of
// one, or an empty one.
func someNode(r *rand.Rand, typ string, nodes map[string][]*Node) *Node {
	have := nodes[typ]
	if len(have) == 0 || r.IntN(4) == 0 {
		return tree.New(typ)
	}
	n := have[r.IntN(len(have))]
	if r.IntN(2) == 0 {
		return n
	}
	copied := &Node{Type: typ, Fields: maps.Clone(n.Fields)}
	if columns := tree.Tables[typ]; len(columns) > 0 {
		delete(copied.Fields, columns[r.IntN(len(columns))].Name)
	}
	return copied
}
