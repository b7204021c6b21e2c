package pte_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// TestParseData resolves each external tensor of a program in the data file that was exported with
// it.
func TestParseData(t *testing.T) {
	d, err := pte.ParseData(readFile(t, "external_weights.ptd"), pte.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	bound := 0
	for i, v := range parseFile(t, "external_weights.pte").Methods[0].Values {
		if v.Tensor == nil || v.Tensor.Storage != pte.External {
			continue
		}
		bound++
		e, ok := d.Entries[v.Tensor.Name]
		if !ok || e.Layout == nil {
			t.Errorf("value %d: no layout under %q, keys %v", i, v.Tensor.Name, slices.Collect(maps.Keys(d.Entries)))
			continue
		}
		if e.Layout.DType != v.Tensor.DType || !slices.Equal(e.Layout.Sizes, v.Tensor.Sizes) || !slices.Equal(e.Layout.DimOrder, v.Tensor.DimOrder) {
			t.Errorf("value %d: layout %+v, the program has %v%v %v", i, *e.Layout, v.Tensor.DType, v.Tensor.Sizes, v.Tensor.DimOrder)
		}
		if got, want := int64(len(e.Data)), v.Tensor.NBytes(); got != want {
			t.Errorf("value %d: %d bytes, want %d", i, got, want)
		}
	}
	if bound != 2 || len(d.Entries) != 2 {
		t.Errorf("%d of %d entries bound, want 2 of 2", bound, len(d.Entries))
	}
}

func TestParseBundle(t *testing.T) {
	b, err := pte.ParseBundle(readFile(t, "bundle.bpte"), pte.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := pte.Parse(b.Program, pte.Limits{})
	if err != nil {
		t.Fatalf("program of the bundle: %v", err)
	}
	if len(b.Suites) != 1 || b.Suites[0].Method != "forward" || len(b.Suites[0].Cases) != 1 {
		t.Fatalf("suites %+v, want 1 case of \"forward\"", b.Suites)
	}
	for i, c := range b.Suites[0].Cases {
		checkBundleValues(t, i, "input", &p.Methods[0], p.Methods[0].Inputs, c.Inputs)
		checkBundleValues(t, i, "output", &p.Methods[0], p.Methods[0].Outputs, c.Outputs)
	}
}

func checkBundleValues(t *testing.T, c int, what string, m *pte.Method, slots []int, values []pte.BundleValue) {
	t.Helper()
	if len(values) != len(slots) {
		t.Fatalf("case %d: %d %ss, the method has %d", c, len(values), what, len(slots))
	}
	for i, v := range values {
		want := m.Values[slots[i]].Tensor
		if v.Kind != tensor.KindTensor || v.DType != want.DType || !slices.Equal(v.Sizes, want.Sizes) || int64(len(v.Data)) != want.NBytes() {
			t.Errorf("case %d %s %d: %v %v%v of %d bytes, the method has %v%v", c, what, i, v.Kind, v.DType, v.Sizes, len(v.Data), want.DType, want.Sizes)
		}
	}
}

func TestSniff(t *testing.T) {
	for _, c := range []struct {
		data string
		want pte.Format
	}{
		{"....ET12", pte.FormatPTE},
		{"....ET99....", pte.FormatPTE},
		{"....FT01", pte.FormatPTD},
		{"....BP08", pte.FormatBPTE},
		{"....ED00", pte.FormatUnknown},
		{"....ETxx", pte.FormatUnknown},
		{"....ET1", pte.FormatUnknown},
		{"", pte.FormatUnknown},
	} {
		if got := pte.Sniff([]byte(c.data)); got != c.want {
			t.Errorf("Sniff(%q) = %v, want %v", c.data, got, c.want)
		}
	}
}
