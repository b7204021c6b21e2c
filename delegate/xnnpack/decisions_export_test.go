package xnnpack

import (
	"fmt"
	"strings"
	"time"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/cost"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine"
)

// Loads returns the loads of a payload with the tiles of an instruction set, as a text: amounts by engine, class and term. It
// is "" for a payload that cannot be planned.
func Loads(set string, p *delegate.Payload) string {
	x, err := (Backend{}).plan(p)
	if err != nil {
		return ""
	}
	var b strings.Builder
	g := x.graph
	for engine := range cost.RatesOf[set] {
		r := &cost.RatesOf[set][engine]
		if engine == cost.ByGo {
			g = goengine.FusedForGo(g, x.shapes)
		}
		for c, row := range cost.LoadOf(g, x.shapes, r, engine, make([]bool, g.Inputs), 1) {
			for k, n := range row {
				if n != 0 {
					fmt.Fprintf(&b, "%d,%d,%d=%g ", engine, c, k, n)
				}
			}
		}
	}
	return strings.TrimSpace(b.String())
}

// PrefersGo reports whether the rates of an instruction set choose the Go engine for payloads with these loads, the sum of
// their times decides.
func PrefersGo(set, loads string) bool {
	var ns [2]float64
	for _, part := range strings.FieldsFunc(loads, func(r rune) bool { return r == ' ' || r == ';' }) {
		var engine, c, k int
		var n float64
		fmt.Sscanf(part, "%d,%d,%d=%g", &engine, &c, &k, &n)
		ns[engine] += n * cost.RatesOf[set][engine].Rates[c][k]
	}
	return cost.Estimates{cost.ByLibrary: time.Duration(ns[cost.ByLibrary]), cost.ByGo: time.Duration(ns[cost.ByGo])}.PrefersGo()
}

// InstructionSet returns the name of the instruction set of the Go engine.
func InstructionSet() string { return cost.GoSet() }

// RatesFolder has the measurements of rates and programs.
const RatesFolder = "internal/cost/testdata/rates"
