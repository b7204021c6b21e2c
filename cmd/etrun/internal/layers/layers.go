// Package layers records the values that instructions, and nodes inside delegates, write,
// and finds where two runs diverge.
package layers

import (
	"errors"
	"fmt"
	"strings"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/trace"
)

// atLoad is the call of values computed at load.
const atLoad = -1

// Place is an instruction in a call, or a node inside its delegate.
type Place struct {
	Call        int    `json:"call"` // or atLoad
	Method      string `json:"method"`
	Chain       int    `json:"chain"`
	Instruction int    `json:"instruction"`
	Operator    string `json:"operator,omitempty"`
	Delegate    int    `json:"delegate"` // -1 for none
	Backend     string `json:"backend,omitempty"`
	Node        int    `json:"node"` // -1 for the instruction itself
	NodeName    string `json:"node_name,omitempty"`
	Layer       string `json:"layer,omitempty"` // module of the model, or the line of its source
}

func placeOf(e *trace.Event, call int) Place {
	p := Place{Call: call, Method: e.Method, Chain: e.Chain, Instruction: e.Instruction,
		Delegate: e.Delegate, Backend: e.Backend, Node: e.Index}
	if e.Run == 0 {
		p.Call = atLoad
	}
	switch {
	case e.Index >= 0:
		p.NodeName = e.Name
	case e.Delegate < 0:
		p.Operator = e.Name
	}
	return p
}

// String formats the place like the errors of a run.
func (p *Place) String() string {
	what := p.Operator
	if p.Delegate >= 0 {
		what = fmt.Sprintf("delegate %d, %s", p.Delegate, p.Backend)
	}
	s := fmt.Sprintf("%s, chain %d, instruction %d (%s)", p.Method, p.Chain, p.Instruction, what)
	if p.Node >= 0 {
		s += fmt.Sprintf(", node %d (%s)", p.Node, p.NodeName)
	}
	if p.Layer != "" {
		s += ", layer " + p.Layer
	}
	switch {
	case p.Call == atLoad:
		s += ", computed at load"
	case p.Call > 0:
		s = fmt.Sprintf("call %d, %s", p.Call, s)
	}
	return s
}

// Written is a written value.
type Written struct {
	Place
	Output int // index among the values of the place
	Slot   int // index in the method's value table, or in the delegate's payload
	Round  int // number of earlier writes of the place in the call
	Value  *tensor.Value

	from []int // what it is computed from: indexes of Recorder.all
}

// TypeName formats the value's type and sizes.
func (w *Written) TypeName() string {
	if w.Value.Kind == tensor.KindTensor {
		return w.Value.Tensor.String()
	}
	return w.Value.Kind.String()
}

// tracker counts the calls of a session, and the writes of each place.
type tracker struct {
	call   int // current call
	begun  bool
	rounds map[roundKey]int
}

type roundKey struct {
	Place
	slot int
}

// begin counts a call.
func (t *tracker) begin() {
	if t.begun {
		t.call++
	}
	t.begun, t.rounds = true, make(map[roundKey]int)
}

func (t *tracker) written(e *trace.Event, k int) Written {
	w := Written{Place: placeOf(e, t.call), Output: k, Slot: e.Values[k].Index, Value: e.Values[k].Value}
	if t.rounds == nil {
		t.rounds = make(map[roundKey]int)
	}
	key := roundKey{w.Place, w.Slot}
	w.Round = t.rounds[key]
	t.rounds[key]++
	return w
}

// Recorder is an observer that keeps the values of one session, up to Limit bytes.
type Recorder struct {
	Limit int64
	Stop  func(error) // called once when the limit is exceeded; may be nil
	List  []Written
	tracker
	flow
	over bool
}

// ofEntry is the approximate overhead of an entry in bytes.
const ofEntry = 512

// Wants selects values and the beginnings of calls.
func (r *Recorder) Wants() trace.Kinds { return trace.Values | 1<<trace.Begin }

// Observe keeps copies of values, and what they are computed from.
func (r *Recorder) Observe(e *trace.Event) {
	switch {
	case e.Kind == trace.Begin:
		r.begin()
		r.forget()
	case e.Chain < 0 || r.over: // outputs are already written by an instruction
	case e.Kind == trace.Read:
		r.read(e)
	default:
		r.write(e)
	}
}

// write keeps the values that a place has written.
func (r *Recorder) write(e *trace.Event) {
	for k := range e.Values {
		w := r.written(e, k)
		if !r.fits(w.Value) {
			return
		}
		w.Value = session.Clone(w.Value)
		w.from = r.sources(e, w.Value)
		r.List = append(r.List, w)
		r.wrote(e, &e.Values[k], len(r.all))
		r.all = append(r.all, w)
	}
}

// fits counts a value that is kept, and reports whether all of them are within the limit.
func (r *Recorder) fits(v *tensor.Value) bool {
	r.Limit -= ofEntry
	if v.Kind == tensor.KindTensor {
		r.Limit -= int64(v.Tensor.NBytes())
	}
	if r.Limit >= 0 {
		return true
	}
	r.over, r.List, r.flow = true, nil, flow{}
	if r.Stop != nil {
		r.Stop(r.Err())
	}
	return false
}

// errLimit means that the values exceed the limit.
var errLimit = errors.New("the values of all instructions exceed the memory limit; raise --max-memory")

// Err returns an error if the values exceeded the limit.
func (r *Recorder) Err() error {
	if r.over {
		return fmt.Errorf("%w: %w", etrun.ErrMemory, errLimit)
	}
	return nil
}

// FileName is the file name of a written value: [load_|callN_]CHAIN_INSTRUCTION[_nodeN]_NAME[_rROUND]_OUTPUT.
func (w *Written) FileName() string {
	var b strings.Builder
	switch {
	case w.Call == atLoad:
		b.WriteString("load_")
	case w.Call > 0:
		fmt.Fprintf(&b, "call%d_", w.Call)
	}
	fmt.Fprintf(&b, "%d_%04d", w.Chain, w.Instruction)
	name := w.Operator
	if w.Delegate >= 0 {
		name = fmt.Sprintf("delegate%d", w.Delegate)
	}
	if w.Node >= 0 {
		fmt.Fprintf(&b, "_node%03d", w.Node)
		name = w.NodeName
	}
	b.WriteString("_" + fileText(name))
	if w.Round > 0 {
		fmt.Fprintf(&b, "_r%d", w.Round)
	}
	fmt.Fprintf(&b, "_%d", w.Output)
	return b.String()
}

// fileText replaces characters of an operator's name that file systems reject.
func fileText(s string) string {
	s = strings.ReplaceAll(s, "::", ".")
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-' {
			return r
		}
		return '-'
	}, s[:min(len(s), 100)])
}
