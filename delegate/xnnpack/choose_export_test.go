package xnnpack

import (
	"fmt"

	"github.com/etrun-go/etrun/delegate"
)

// WhyGo is what chooses the engine.
var WhyGo = whyGo

// CountPayload returns the multiplications of a payload, with the letter b if it has 8-bit products.
func CountPayload(p *delegate.Payload) string {
	x, err := (Backend{}).plan(p)
	if err != nil {
		return ""
	}
	text := fmt.Sprintf("%.0f", x.graph.Cost(x.shapes))
	if multipliesBytes(x.graph) {
		text += "b"
	}
	return text
}
