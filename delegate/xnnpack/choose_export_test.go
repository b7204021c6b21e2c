package xnnpack

import (
	"fmt"

	"github.com/etrun-go/etrun/delegate"
)

// WhyGo is what chooses the engine.
var WhyGo = whyGo

// CountPayload returns the multiplications of a payload, with the letter b if it has 8-bit products.
func CountPayload(p *delegate.Payload) string {
	g, err := Backend{}.read(p)
	if err != nil {
		return ""
	}
	m, err := plan(g, p.Args)
	if err != nil {
		return ""
	}
	text := fmt.Sprintf("%.0f", m.Graph.Cost(m.Shapes))
	if multipliesBytes(m.Graph) {
		text += "b"
	}
	return text
}
