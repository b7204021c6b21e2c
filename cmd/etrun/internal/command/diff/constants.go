package diff

import (
	"fmt"

	"github.com/etrun-go/etrun/cmd/etrun/internal/diff"
	"github.com/etrun-go/etrun/cmd/etrun/internal/edits"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// constant is a constant, or the initial value of state, of a method.
type constant struct {
	label string
	named bool // has the name of a parameter or buffer
	spec  *pte.Tensor
	data  []byte // nil if not available
}

// constantsOf lists the constants of a method in the order of its values.
func (f *methodFacts) constantsOf() (list []*constant) {
	for v := range f.spec.Values {
		t := f.spec.Values[v].Tensor
		if t == nil || t.Storage == pte.Unplanned || t.Storage == pte.Planned {
			continue
		}
		c := &constant{label: t.Name, named: t.Name != "", spec: t, data: t.Data}
		if !c.named {
			c.label = fmt.Sprintf("value %d", v)
		}
		if t.Storage == pte.External || t.Storage == pte.ExternalPlanned {
			c.data, _ = f.Named(t.Name)
		}
		list = append(list, c)
	}
	return list
}

// constants compares constants by name. Constants without a counterpart of that name are
// matched by equal bytes, then by type in order, and last by position.
func (d *differ) constants(a, b *methodFacts) {
	left, right := a.constantsOf(), b.constantsOf()
	for _, alike := range []func(x, y *constant) bool{
		func(x, y *constant) bool { return x.named && y.named && x.label == y.label },
		func(x, y *constant) bool { return x.label == y.label && typeText(x.spec) == typeText(y.spec) },
		func(x, y *constant) bool {
			return typeText(x.spec) == typeText(y.spec) && x.data != nil && equal(x.data, y.data)
		},
		func(x, y *constant) bool { return !x.named && !y.named && typeText(x.spec) == typeText(y.spec) },
		func(x, y *constant) bool { return x.label == y.label },
	} {
		rest := left[:0]
		for _, x := range left {
			i := 0
			for i < len(right) && !alike(x, right[i]) {
				i++
			}
			if i == len(right) {
				rest = append(rest, x)
				continue
			}
			d.constant(x, right[i])
			right = append(right[:i], right[i+1:]...)
		}
		left = rest
	}
	for i := range left {
		d.add(inConstants, left[i].label, left[i].text(), "", "")
	}
	for i := range right {
		d.add(inConstants, right[i].label, "", right[i].text(), "")
	}
}

func (c *constant) text() string {
	if c.data == nil {
		return typeText(c.spec) + ", external"
	}
	return typeText(c.spec) + ", " + digest(c.data)
}

// constant compares two matched constants.
func (d *differ) constant(a, b *constant) {
	ta, tb := typeText(a.spec), typeText(b.spec)
	switch {
	case ta != tb || a.spec.Storage != b.spec.Storage:
		d.texts(inConstants, a.label, ta+", "+a.spec.Storage.String(), tb+", "+b.spec.Storage.String())
	case a.data != nil && b.data != nil && !equal(a.data, b.data):
		d.add(inConstants, a.label, a.text(), b.text(), ta+": "+valuesText(specTensor(a), specTensor(b)))
	}
}

func specTensor(c *constant) *tensor.Tensor {
	t := tensor.Make(c.spec.DType, c.spec.Sizes, c.spec.DimOrder, tensor.Static)
	if tensor.Aligned(c.data, c.spec.DType.Size()) {
		t.Data = c.data[:t.NBytes()]
		return t
	}
	t.Bind(tensor.AlignedBytes(t.NBytes()))
	copy(t.Data, c.data)
	return t
}

// valuesText describes the distance of two tensors of one type.
func valuesText(a, b *tensor.Tensor) string {
	x, y := tensor.TensorValue(a), tensor.TensorValue(b)
	m := diff.Measure(&y, &x, kernels.Tolerance{})
	return fmt.Sprintf("%s (max abs %v, mean abs %v)", m.Differs, m.MaxAbs, m.MeanAbs)
}

// delegates compares delegates by index.
func (d *differ) delegates(a, b *methodFacts) {
	x, y := a.spec.Delegates, b.spec.Delegates
	for i := range max(len(x), len(y)) {
		item := fmt.Sprintf("delegate %d", i)
		if i >= len(x) || i >= len(y) || x[i].ID != y[i].ID {
			d.texts(inDelegates, item, delegateText(x, i), delegateText(y, i))
			continue
		}
		d.specs(item, x[i].Specs, y[i].Specs)
		before := len(d.report.Differences)
		if i < len(a.infos) && i < len(b.infos) {
			d.nodes(item, &a.infos[i], &b.infos[i])
		}
		if before == len(d.report.Differences) && !equal(x[i].Data, y[i].Data) {
			d.texts(inDelegates, item+", payload", delegateText(x, i), delegateText(y, i))
		}
	}
}

func delegateText(list []pte.Delegate, i int) string {
	if i >= len(list) {
		return ""
	}
	return fmt.Sprintf("%s, %d bytes, %s", list[i].ID, len(list[i].Data), digest(list[i].Data))
}

func (d *differ) specs(item string, a, b []pte.CompileSpec) {
	lines := func(list []pte.CompileSpec) (lines []string) {
		for _, s := range list {
			lines = append(lines, fmt.Sprintf("%.100q = %.100q", s.Key, s.Value))
		}
		return lines
	}
	d.lines(inDelegates, item+", compile spec", lines(a), lines(b))
}

// nodes compares payloads node by node, and the constants of equal nodes.
func (d *differ) nodes(item string, a, b *delegate.Info) {
	left, right := nodeLines(a), nodeLines(b)
	d.lines(inDelegates, item+", node", left, right)
	for _, p := range edits.Align(left, right) {
		if p.A < 0 || p.B < 0 {
			continue
		}
		x, y := a.Nodes[p.A].Constants, b.Nodes[p.B].Constants
		for k := range min(len(x), len(y)) {
			if !equal(x[k].Data, y[k].Data) {
				d.add(inDelegates, fmt.Sprintf("%s, node %d (%s), constant %d", item, p.A, a.Nodes[p.A].Name, k),
					digest(x[k].Data), digest(y[k].Data), x[k].String()+": "+valuesText(x[k], y[k]))
			}
		}
	}
	facts := func(info *delegate.Info) (lines []string) {
		for _, f := range info.Facts {
			lines = append(lines, f[0]+": "+f[1])
		}
		return lines
	}
	d.lines(inDelegates, item+", fact", facts(a), facts(b))
}

func nodeLines(info *delegate.Info) (lines []string) {
	for _, n := range info.Nodes {
		lines = append(lines, n.Name+" "+n.Detail)
	}
	return lines
}
