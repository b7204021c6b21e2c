package graphtest

import (
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// firstID is the id of value 0 in payloads made by encode.
const firstID = 100

// Encode writes a graph as a payload that contains the constants.
func Encode(g *graph.Graph) []byte { return g.Payload(firstID) }

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
