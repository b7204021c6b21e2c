package page

import (
	"strings"
	"time"

	"github.com/etrun-go/etrun/cmd/etrun/internal/chart"
	"github.com/etrun-go/etrun/cmd/etrun/internal/profile"
)

// Profile is the profile of a method's runs.
type Profile struct {
	Runs        int
	Median, Max time.Duration
	Rows        []profile.Row // by operator, nodes below their delegates
	Flame       Markup
}

// Timed adds profiles to the methods and instructions.
func (p *Page) Timed(profiles []*profile.Profile) {
	for _, from := range profiles {
		for _, m := range p.Methods {
			if m.Name == from.Method {
				m.timed(from)
			}
		}
	}
}

func (m *Method) timed(from *profile.Profile) {
	var b strings.Builder
	chart.WriteArea(&b, from.FlameHeight(), chart.Width, from.Flame())
	m.Profile = &Profile{from.Runs, from.Median, from.Max, from.ByOperator(), Markup(b.String())}
	rows := make(map[string]*profile.Row)
	for i := range from.Rows {
		rows[from.Rows[i].Place()] = &from.Rows[i]
	}
	for i := range m.Instructions {
		in := &m.Instructions[i]
		r := rows[in.At]
		if r == nil {
			continue
		}
		delete(rows, in.At) // a step of lowering may have the same location
		in.Time = timeOf(r)
		in.timeNodes(r.Parts)
	}
}

// timeNodes adds times to the nodes of a delegate. XNNPACK's engine measures its own
// operators, which are then a separate list.
func (in *Instruction) timeNodes(parts []profile.Row) {
	same := func(r *profile.Row) bool {
		return r.Node < len(in.Nodes) && (r.Node < 0 || strings.HasSuffix(r.Name, in.Nodes[r.Node].Name))
	}
	for k := range parts {
		if !same(&parts[k]) {
			in.Measured = parts
			return
		}
	}
	for k := range parts {
		if at := parts[k].Node; at >= 0 {
			in.Nodes[at].Time = timeOf(&parts[k])
		}
	}
}

func timeOf(r *profile.Row) *Time { return &Time{r.Median, r.Max, r.Share} }
