// Package plan is the command plan, which shows memory plans.
package plan

import (
	"context"
	"fmt"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/bytesize"
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/cmd/etrun/internal/timeline"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/plan"
)

// planCommand shows the memory plan of a method.
type planCommand struct {
	*cli.App
	session.Options
	method, svg, html string
}

// report is the JSON object of plan. Sizes and offsets are in bytes. Lifetimes are in
// instructions; -1 is before the first, when inputs are set. A call of a delegate may have several
// moments, and storages that are alive in different ones may share bytes. A storage that is never
// used ends before it begins.
type report struct {
	Schema     string     `json:"schema"`
	Model      string     `json:"model"`
	Method     string     `json:"method"`
	InUse      string     `json:"in_use"` // source of the plan that a run uses
	FileBytes  int64      `json:"file_bytes"`
	FileWhole  bool       `json:"file_plan_usable"`
	OwnBytes   int64      `json:"own_bytes"`
	LowerBound int64      `json:"lower_bound"`
	StateBytes int64      `json:"state_bytes"`
	Steps      int        `json:"instructions"`
	Storages   []storage  `json:"storages"`
	Conflicts  []conflict `json:"conflicts"`
}

// storage is one row: a storage, or a block of a delegate's working memory, which has no
// values. An offset is absent if the plan does not place it.
type storage struct {
	Values      []int  `json:"values"` // none of scratch
	Name        string `json:"name,omitempty"`
	Kind        string `json:"kind"` // activation, input, state, constant, heap, folded; scratch of a delegate
	Type        string `json:"type"` // of the first value; empty for scratch
	Output      bool   `json:"output,omitempty"`
	Bytes       int64  `json:"bytes"`
	First       int    `json:"first"`        // instruction
	FirstMoment int    `json:"first_moment"` // of the instruction's moments, from 0
	Last        int    `json:"last"`         // inclusive
	LastMoment  int    `json:"last_moment"`
	FileArena   *int   `json:"file_arena,omitempty"`
	FileOffset  *int64 `json:"file_offset,omitempty"`
	OwnOffset   *int64 `json:"own_offset,omitempty"`

	alive string // lifetime as text
}

// conflict is two storages that are alive at once and share bytes.
type conflict struct {
	A     []int `json:"a"` // values
	B     []int `json:"b"`
	Arena int   `json:"arena"`
	Lo    int64 `json:"lo"`
	Hi    int64 `json:"hi"`
	Step  int   `json:"step"`
}

// New returns the command.
func New(a *cli.App) *cobra.Command {
	p := &planCommand{App: a, Options: session.Options{Say: a.Note, Describe: true}}
	c := &cobra.Command{
		Use:   "plan MODEL.pte",
		Short: "Show the memory plan of a method",
		Long: "Show the storages of a method, and the scratch of its delegates, with their lifetimes and their offsets in the file's plan\n" +
			"and in etrun's own; as a table, as JSON, or as a drawing: time from left to right, addresses upward. Lifetimes are in\n" +
			"instructions; a call of a delegate may have several moments, and 3.2 is moment 2 of instruction 3.",
		Example: "  etrun plan model.pte\n  etrun plan model.pte --svg plan.svg\n" +
			"  etrun plan model.pte --html plan.html\n  etrun plan model.pte --json",
		Args:              cli.OneModel,
		ValidArgsFunction: cli.CompleteModel,
		RunE:              func(c *cobra.Command, args []string) error { return p.run(c.Context(), args[0]) },
	}
	c.Flags().StringVar(&p.method, "method", "", "method `NAME` (default \"forward\")")
	c.Flags().StringVar(&p.svg, "svg", "", "draw the plans to `FILE`.svg")
	c.Flags().StringVar(&p.html, "html", "", "draw the plans to `FILE`.html, a self-contained page")
	p.AddFlags(c.Flags())
	return c
}

func (p *planCommand) run(ctx context.Context, path string) error {
	if err := p.LeaveStdout(p.svg, p.html); err != nil {
		return err
	}
	s, err := session.Open(ctx, path, &p.Options)
	if err != nil {
		return err
	}
	defer s.Close()
	m, err := s.LoadOwn(ctx, p.method)
	if err != nil {
		return err
	}
	s.Warn()
	r := reportPlan(path, m)
	drawing := timeline.New(m).Chart(fmt.Sprintf("%s, method %s", filepath.Base(path), cli.Printable(m.Name())))
	if p.svg != "" {
		if err := output.WriteFile(ctx, p.svg, drawing.WriteSVG); err != nil {
			return err
		}
	}
	if p.html != "" {
		if err := output.WriteFile(ctx, p.html, drawing.WriteHTML); err != nil {
			return err
		}
	}
	if p.JSON {
		return p.WriteJSON(r)
	}
	if p.svg != "" || p.html != "" {
		return nil
	}
	return r.print(p.App)
}

func reportPlan(path string, m *etrun.Method) *report {
	mp := m.Report().Plan
	r := &report{Schema: "etrun.plan/1", Model: path, Method: m.Name(), InUse: mp.Source, FileBytes: mp.File.Size(),
		FileWhole: mp.File.Whole, OwnBytes: mp.Own.Size(), LowerBound: mp.LowerBound, StateBytes: mp.StateBytes,
		Steps: len(mp.Method.Steps), Storages: []storage{}, Conflicts: []conflict{}}
	for i := range mp.Method.Storages {
		if len(mp.Method.Storages[i].Values) > 0 {
			r.Storages = append(r.Storages, reportStorage(mp, i))
		}
	}
	for d := range m.Delegates() {
		from, to := mp.Blocks(d)
		for i := from; i < to; i++ {
			r.Storages = append(r.Storages, reportBlock(mp, i, d))
		}
	}
	for _, c := range mp.Conflicts {
		a, b := mp.Method.Storages[c.A].Values, mp.Method.Storages[c.B].Values
		r.Conflicts = append(r.Conflicts, conflict{a, b, c.Arena, c.Lo, c.Hi, c.Step})
	}
	return r
}

func reportStorage(mp *plan.Memory, i int) storage {
	s := &mp.Method.Storages[i]
	value := mp.Method.Values[s.Values[0]].Tensor
	r := storage{Values: s.Values, Name: storageName(mp.Method, s), Kind: s.Kind.String(),
		Type: value.DType.String() + " " + tensor.FormatSizes(value.Sizes), Output: s.Output, Bytes: s.Bytes}
	switch {
	case s.Last < s.First:
		r.First, r.Last, r.alive = 0, -1, "never"
	case mp.Own.Placed[i]:
		r.setLife(mp, mp.Items[i].First, mp.Items[i].Last)
	default: // alive during whole instructions
		r.setLife(mp, start(mp, s.First), start(mp, s.Last+1)-1)
	}
	r.setPlaces(mp, i)
	return r
}

// reportBlock reports item i of the plan, a block of a delegate's working memory.
func reportBlock(mp *plan.Memory, i, d int) storage {
	r := storage{Values: []int{}, Name: fmt.Sprintf("delegate %d", d), Kind: "scratch", Bytes: mp.Items[i].Bytes}
	r.setLife(mp, mp.Items[i].First, mp.Items[i].Last)
	r.setPlaces(mp, i)
	return r
}

// start returns the first moment of an instruction. There is one moment before the first
// instruction, and one after the last.
func start(mp *plan.Memory, step int) int {
	n := len(mp.Method.Steps)
	switch {
	case step < 0:
		return step
	case step > n:
		return mp.Moments[n] + step - n
	}
	return mp.Moments[step]
}

// setLife sets the lifetime, from one moment of the plan to another.
func (r *storage) setLife(mp *plan.Memory, first, last int) {
	from, to := timeline.MomentOf(mp, first), timeline.MomentOf(mp, last)
	r.First, r.FirstMoment, r.Last, r.LastMoment = from.Step, from.Index, to.Step, to.Index
	r.alive = from.String() + "–" + to.String()
}

// setPlaces sets the offsets of item i in both plans.
func (r *storage) setPlaces(mp *plan.Memory, i int) {
	if mp.File.Placed[i] {
		at := mp.File.Places[i]
		r.FileArena, r.FileOffset = &at.Arena, &at.Offset
	}
	if mp.Own.Placed[i] {
		offset := mp.Own.Places[i].Offset
		r.OwnOffset = &offset
	}
}

// storageName returns the first name of a value in the storage.
func storageName(m *ir.Method, s *ir.Storage) string {
	for _, v := range s.Values {
		if name := m.Values[v].Tensor.Name; name != "" {
			return name
		}
	}
	return ""
}

func (r *report) print(a *cli.App) error {
	t := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "method %q: %s\n", r.Method, cli.Count(r.Steps, "instruction", "instructions"))
	fmt.Fprintln(t, "values\tkind\ttype\tbytes\talive\tfile\town\tname")
	for i := range r.Storages {
		s := &r.Storages[i]
		if s.Kind == ir.Constant.String() {
			continue
		}
		kind, values := s.Kind, fmt.Sprint(s.Values)
		if s.Output {
			kind += ", output"
		}
		if len(s.Values) == 0 {
			values = "–"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", values, kind, s.Type, s.Bytes, s.alive,
			filePlace(s), place(s.OwnOffset), cli.Printable(s.Name))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, c := range r.Conflicts {
		fmt.Fprintf(a.Out, "conflict: values %v and %v share bytes %d–%d of arena %d at instruction %d of the file's plan\n",
			c.A, c.B, c.Lo, c.Hi, c.Arena, c.Step)
	}
	_, err := fmt.Fprintf(a.Out, "file %s%s, own %s, lower bound %s, state %s; in use: %s\n",
		bytesize.Format(r.FileBytes), unusable(r.FileWhole),
		bytesize.Format(r.OwnBytes), bytesize.Format(r.LowerBound), bytesize.Format(r.StateBytes), r.InUse)
	return err
}

func unusable(whole bool) string {
	if whole {
		return ""
	}
	return " (incomplete or unsafe)"
}

func place(offset *int64) string {
	if offset == nil {
		return "–"
	}
	return fmt.Sprint(*offset)
}

func filePlace(s *storage) string {
	if s.FileArena != nil && *s.FileArena > 0 {
		return fmt.Sprintf("%d:%d", *s.FileArena, *s.FileOffset)
	}
	return place(s.FileOffset)
}
