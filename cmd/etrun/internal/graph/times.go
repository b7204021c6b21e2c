package graph

import (
	"math"
	"strings"

	"github.com/etrun-go/etrun/cmd/etrun/internal/edits"
	"github.com/etrun-go/etrun/cmd/etrun/internal/profile"
	"github.com/etrun-go/etrun/cmd/etrun/internal/valuetext"
	"github.com/etrun-go/etrun/runtime/ir"
)

// Timed adds the times of profiles.
func (p *Program) Timed(profiles []*profile.Profile) {
	for _, from := range profiles {
		for _, m := range p.Methods {
			if m.Name == valuetext.Cut(from.Method) {
				m.timed(from)
			}
		}
	}
}

func (m *Method) timed(from *profile.Profile) {
	rows := make(map[string]*profile.Row)
	for i := range from.Rows {
		rows[from.Rows[i].Place()] = &from.Rows[i]
	}
	m.Runs = from.Runs
	for i := range m.Sheets[0].Nodes {
		n := &m.Nodes[m.Sheets[0].Nodes[i]]
		r := rows[n.At]
		if r == nil || n.At == "" {
			continue
		}
		delete(rows, n.At) // a step of lowering may have the same location
		n.Time, n.Share = r.Median, r.Share
		if n.Sheet > 0 {
			m.timeInside(&m.Sheets[n.Sheet], r.Parts)
		}
	}
}

// timeInside adds the times of a delegate's operations.
func (m *Method) timeInside(s *Sheet, parts []profile.Row) {
	var inner []*Node
	var names []string
	for _, i := range s.Nodes {
		if m.Nodes[i].Kind == kindInner {
			inner, names = append(inner, &m.Nodes[i]), append(names, m.Nodes[i].Name)
		}
	}
	for part, at := range MatchNodes(parts, names) {
		if at >= 0 {
			inner[at].Time += parts[part].Median
			inner[at].Share += parts[part].Share
		}
	}
}

// MatchNodes returns for each measured operation of a delegate the index of its node, -1 for none. An engine may merge
// nodes, and libXNNPACK has names and further operations of its own.
func MatchNodes(parts []profile.Row, nodes []string) []int {
	list := make([]int, len(parts))
	var measured []string
	var rows []int
	same := true
	for i := range parts {
		if list[i] = -1; parts[i].Node < 0 {
			continue
		}
		measured, rows = append(measured, operatorClass(parts[i].Name)), append(rows, i)
		same = same && parts[i].Node < len(nodes) && strings.HasSuffix(parts[i].Name, nodes[parts[i].Node])
	}
	if same || len(measured) == len(nodes) {
		for k, i := range rows {
			list[i] = k
			if same {
				list[i] = parts[i].Node
			}
		}
		return list
	}
	wanted := make([]string, len(nodes))
	for k, name := range nodes {
		wanted[k] = operatorClass(name)
	}
	for _, pair := range edits.Align(measured, wanted) {
		if pair.A >= 0 && pair.B >= 0 {
			list[rows[pair.A]] = pair.B
		}
	}
	return list
}

// operatorClasses are the operators of libXNNPACK by parts of the names of nodes and of measured operations.
var operatorClasses = named{
	{"depthwise", []string{"dwconv", "depthwise"}},
	{"transposed convolution", []string{"deconv", "convtranspose"}},
	{"convolution", []string{"conv2d", "convolution"}},
	{"product", []string{"fully connected", "fullyconnected", "batchmatrixmultiply", "batch matrix multiply"}},
	{"softmax", []string{"softmax"}},
	{"transpose", []string{"transpose"}},
	{"max pooling", []string{"max pool", "maxpool"}},
	{"mean", []string{"mean", "average pool", "avgpool", "globalavg"}},
	{"resize", []string{"resize"}},
	{"pad", []string{"pad"}},
	{"copy", []string{"copy", "reshape", "slice", "concatenate", "split"}},
	{"binary", []string{"binary elementwise", "add", "subtract", "multiply", "div", "maximum", "minimum", "squareddifference", "prelu"}},
}

// operatorClass returns the class of a node or a measured operation; all others are functions of one operand.
func operatorClass(name string) string { return operatorClasses.of(name, "unary") }

// Differs sets the difference of the results of an instruction, or of a node of its delegate, from those of another
// program, unless a larger one is set.
func (p *Program) Differs(method string, chain, instruction, node int, by float64) {
	at := ir.Origin{Chain: chain, Index: instruction}.String()
	if math.IsNaN(by) || math.IsInf(by, 0) {
		by = math.MaxFloat64 // JSON has no others
	}
	for _, m := range p.Methods {
		if m.Name != valuetext.Cut(method) {
			continue
		}
		k := m.locate(at, node)
		if k >= 0 && (m.Nodes[k].Error == nil || *m.Nodes[k].Error < by) {
			m.Nodes[k].Error = &by
		}
	}
}

// locate returns the node of an instruction of the file, or of an operation of its delegate; -1 for none.
func (m *Method) locate(at string, inner int) int {
	if m.byLocation == nil {
		m.byLocation = make(map[string]int)
		for i := range m.Nodes {
			if n := &m.Nodes[i]; n.At != "" {
				m.byLocation[n.At] = i
			}
		}
	}
	k, ok := m.byLocation[at]
	switch {
	case !ok:
		return -1
	case inner < 0:
		return k
	}
	for i := k + 1; i < len(m.Nodes) && m.Nodes[k].Sheet > 0 && m.Nodes[i].At == ""; i++ {
		if m.Nodes[i].Kind != kindInner {
			continue
		}
		if inner == 0 {
			return i
		}
		inner--
	}
	return -1
}
