package page

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/chart"
	"github.com/etrun-go/etrun/cmd/etrun/internal/valuetext"
	"github.com/etrun-go/etrun/runtime/ir"
)

// weights collects constants, each once; methods may share them.
type weights struct {
	rows []Weight
	seen map[*byte]int // row by first byte
}

// newWeights starts with the named data of the program and its data files.
func newWeights(prog *etrun.Program) *weights {
	w := &weights{seen: make(map[*byte]int)}
	for _, key := range prog.NamedKeys() {
		if data, ok := prog.Named(key); ok {
			w.row(data, Weight{Name: valuetext.Cut(key), From: "named data"})
		}
	}
	return w
}

// row adds a row for data, or returns the existing one.
func (w *weights) row(data []byte, as Weight) *Weight {
	if len(data) == 0 {
		return nil
	}
	if at, ok := w.seen[&data[0]]; ok {
		return &w.rows[at]
	}
	w.seen[&data[0]] = len(w.rows)
	as.Bytes = int64(len(data))
	w.rows = append(w.rows, as)
	return &w.rows[len(w.rows)-1]
}

// add adds the constants of a method, and the payloads of its delegates.
func (w *weights) add(d *describer) {
	for i := range d.spec.Delegates {
		w.row(d.spec.Delegates[i].Data, Weight{Name: fmt.Sprintf("payload of delegate %d", i), From: valuetext.Cut(d.spec.Delegates[i].ID)})
	}
	if d.ir == nil {
		w.addFile(d)
		return
	}
	users := d.users()
	for i := range d.ir.Storages {
		s := &d.ir.Storages[i]
		if !s.Kind.IsConstant() || len(s.Values) == 0 {
			continue
		}
		t := d.ir.Values[s.Values[0]].Tensor
		from := "file"
		if s.Kind == ir.Folded {
			from = "computed at load"
		}
		r := w.row(s.Data, Weight{Name: valuetext.Cut(t.Name), From: from})
		if r == nil {
			continue
		}
		if r.Type = valuetext.Type(t.DType, t.Sizes); r.Name == "" {
			r.Name = fmt.Sprintf("value %d", s.Values[0])
		}
		if text := strings.Join(users[i], ", "); text != "" && !strings.Contains(r.Users, text) {
			r.Users = valuetext.Cut(strings.TrimPrefix(r.Users+", "+text, ", "))
		}
	}
}

// addFile adds the constants of a method that does not load here.
func (w *weights) addFile(d *describer) {
	for v := range d.spec.Values {
		if t := d.spec.Values[v].Tensor; t != nil {
			if r := w.row(t.Data, Weight{Name: cmp.Or(valuetext.Cut(t.Name), fmt.Sprintf("value %d", v)), From: "file"}); r != nil {
				r.Type = valuetext.Type(t.DType, t.Sizes)
			}
		}
	}
}

// users returns the instructions that read each storage.
func (d *describer) users() [][]string {
	const maxUsers = 4
	list := make([][]string, len(d.ir.Storages))
	for i := range d.ir.Steps {
		s := &d.ir.Steps[i]
		for _, v := range slices.Concat(s.Reads, s.Updates) {
			k := d.ir.Values[v].Storage
			if k < 0 || !d.ir.Storages[k].Kind.IsConstant() || len(list[k]) > maxUsers {
				continue
			}
			text := fmt.Sprintf("%d %s", i, chart.Short(d.ir.StepName(s)))
			if len(list[k]) == maxUsers {
				text = "…"
			}
			list[k] = append(list[k], text)
		}
	}
	return list
}

// list returns all rows, the largest first.
func (w *weights) list() Weights {
	l := Weights{Rows: w.rows}
	for i := range w.rows {
		l.Total += w.rows[i].Bytes
	}
	sort.SliceStable(l.Rows, func(i, j int) bool { return l.Rows[i].Bytes > l.Rows[j].Bytes })
	l.Left = max(len(l.Rows)-maxWeights, 0)
	l.Rows = l.Rows[:len(l.Rows)-l.Left]
	return l
}
