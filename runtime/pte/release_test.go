package pte_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	pt "github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// firstForms returns the sample without features that releases before 0.6 could not write: named
// data, state with a value, external data, devices.
func firstForms() *pte.Program {
	p := pt.Sample()
	p.Named = nil
	m := &p.Methods[0]
	for i, v := range m.Values {
		if v.Kind == tensor.KindTensor && v.Tensor.Storage != pte.Constant && v.Tensor.Storage != pte.Unplanned {
			v.Tensor.Storage, v.Tensor.Data, v.Tensor.Name, v.Tensor.Device = pte.Planned, nil, "", 0
		}
		m.Values[i] = v
	}
	for i := range m.Arenas {
		m.Arenas[i].Device, m.Arenas[i].DeviceIndex = 0, 0
	}
	return p
}

// inlineConstants moves the constants into the FlatBuffer; delegates stay in segments.
func inlineConstants(f *pt.File, p *pte.Program) {
	inline := pt.Describe(p, pt.Layout{Inline: true})
	f.Root.Fields["constant_buffer"] = inline.Root.Fields["constant_buffer"]
	pt.Set(f.Root, "constant_segment", nil)
}

// eachTable calls f with every table of a type in a tree.
func eachTable(n *pt.Node, typ string, f func(*pt.Node)) {
	if n.Type == typ {
		f(n)
	}
	for _, v := range n.Fields {
		switch v := v.(type) {
		case *pt.Node:
			eachTable(v, typ, f)
		case []*pt.Node:
			for _, item := range v {
				eachTable(item, typ, f)
			}
		}
	}
}

// TestReleases reads one program as written by different releases of the exporter: each field is
// written from some release on, and a program without it has the same meaning.
func TestReleases(t *testing.T) {
	for _, c := range []struct {
		name   string
		layout pt.Layout
		edit   func(f *pt.File, p *pte.Program)
		header uint32 // length, 0 for none
	}{
		{name: "everything inline, no header", layout: pt.Layout{Inline: true}},
		{name: "constants inline, delegates in segments", layout: pt.Layout{OldHeader: true}, edit: inlineConstants, header: 24},
		{name: "inline constants and an empty constant segment", layout: pt.Layout{OldHeader: true}, header: 24, edit: func(f *pt.File, p *pte.Program) {
			empty := pt.Find(f.Root, "constant_segment")
			pt.Set(empty, "offsets", []pt.Scalar{0})
			inlineConstants(f, p)
			pt.Set(f.Root, "constant_segment", empty)
		}},
		{name: "header without the size of the segments", layout: pt.Layout{OldHeader: true}, header: 24},
		{name: "header as it is now", header: 32},
		{name: "header longer than known", header: 48, edit: func(f *pt.File, _ *pte.Program) { f.Header = 48 }},
		{name: "no upper half of offsets", header: 32, edit: func(f *pt.File, _ *pte.Program) {
			eachTable(f.Root, "AllocationDetails", func(n *pt.Node) { pt.Set(n, "memory_offset_high", nil) })
		}},
		{name: "no extra tensor info", header: 32, edit: func(f *pt.File, _ *pte.Program) {
			eachTable(f.Root, "Tensor", func(n *pt.Node) { pt.Set(n, "extra_tensor_info", nil) })
		}},
		{name: "no devices, state or named data", header: 32, edit: func(f *pt.File, _ *pte.Program) {
			pt.Set(f.Root, "mutable_data_segments", nil)
			pt.Set(f.Root, "named_data", nil)
			pt.Set(f.Root, "execution_plan[0].non_const_buffer_device", nil)
		}},
		{name: "state segments with nothing but the placeholder", header: 32, edit: func(f *pt.File, _ *pte.Program) {
			empty := pt.Find(f.Root, "constant_segment")
			copied := &pt.Node{Type: empty.Type, Fields: map[string]any{"segment_index": empty.Fields["segment_index"], "offsets": []pt.Scalar{0}}}
			pt.Set(f.Root, "mutable_data_segments", []*pt.Node{copied})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := firstForms()
			f := pt.Describe(p, c.layout)
			if c.edit != nil {
				c.edit(f, p)
			}
			got, err := pte.Parse(f.Bytes(), pte.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(p, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(pte.Program{}, "Header", "Size")); diff != "" {
				t.Errorf("wanted to read:\n%s", diff)
			}
			if length := headerLength(got); length != c.header {
				t.Errorf("a header of %d bytes, want %d", length, c.header)
			}
		})
	}
}

func headerLength(p *pte.Program) uint32 {
	if p.Header == nil {
		return 0
	}
	return p.Header.Length
}
