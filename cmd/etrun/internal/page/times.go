package page

import (
	"html/template"
	"strings"
	"time"

	"github.com/etrun-go/etrun/cmd/etrun/internal/chart"
	"github.com/etrun-go/etrun/cmd/etrun/internal/profile"
)

// Profile is where the time of a method's runs goes.
type Profile struct {
	Runs        int
	Median, Max time.Duration
	Rows        []profile.Row // by operator, nodes below their delegates
	Flame       template.HTML
}

// Timed adds the times of runs to the methods and instructions that they are of.
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
	m.Profile = &Profile{from.Runs, from.Median, from.Max, from.ByOperator(), template.HTML(b.String())}
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
		delete(rows, in.At) // a step of lowering may stand at the same place
		in.Time = timeOf(r)
		in.timeNodes(r.Parts)
	}
}

// timeNodes gives the nodes of a delegate their times. XNNPACK's own engine measures what it
// made of the nodes, which is a list of its own then.
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
