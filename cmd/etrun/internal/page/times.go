package page

import (
	"strings"

	"github.com/etrun-go/etrun/cmd/etrun/internal/chart"
	"github.com/etrun-go/etrun/cmd/etrun/internal/graph"
	"github.com/etrun-go/etrun/cmd/etrun/internal/profile"
)

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

// timeNodes adds times to the nodes of a delegate. What an engine measures in addition, or under names of its own, is
// a list of its own.
func (in *Instruction) timeNodes(parts []profile.Row) {
	names := make([]string, len(in.Nodes))
	for k := range in.Nodes {
		names[k] = in.Nodes[k].Name
	}
	for k, at := range graph.MatchNodes(parts, names) {
		if at >= 0 {
			in.Nodes[at].Time = timeOf(&parts[k])
		}
		if at < 0 && parts[k].Node >= 0 || at >= 0 && !strings.HasSuffix(parts[k].Name, names[at]) {
			in.Measured = parts
		}
	}
}

func timeOf(r *profile.Row) *Time { return &Time{r.Median, r.Max, r.Share} }
