package graphtest

import (
	"fmt"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// firstID is the id of value 0 in payloads made by encode.
const firstID = 100

// Encode writes a graph as a payload that contains the constants.
func Encode(g *graph.Graph) []byte { return g.Payload(firstID) }

// EncodeNamed is encode with the constants in named instead of in the payload, unless named is nil.
func EncodeNamed(g *graph.Graph, named map[string][]byte) []byte {
	if named == nil {
		return Encode(g)
	}
	with := *g
	with.Values = append([]graph.Value{}, g.Values...)
	for v := range with.Values {
		if x := &with.Values[v]; x.IsConst() {
			key := constantKey(len(named) + 1)
			named[key] = x.Data
			x.Found = &graph.FoundData{Key: key, Data: x.Data}
		}
	}
	return Encode(&with)
}

// constantKey is the name of a payload's i-th constant among named data.
func constantKey(i int) string { return fmt.Sprint("constant ", i) }

// EncodedID is the id of value v in payloads made by encode.
func EncodedID(v int) uint32 {
	if v == graph.None {
		return graph.NoValue
	}
	return uint32(v + firstID)
}

// ReadGraph reads a payload without information from a program.
func ReadGraph(data []byte, named delegate.NamedData) (*graph.Graph, error) {
	return graph.ReadPayload(&delegate.Payload{Data: data, Named: named}, true)
}
