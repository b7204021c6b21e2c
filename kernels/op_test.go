package kernels

import (
	"strings"
	"testing"

	"github.com/etrun-go/etrun/kernels/opclass"
)

// TestClassNeedsItsArguments rejects rows with a class whose schema has other arguments: passes rely on them.
func TestClassNeedsItsArguments(t *testing.T) {
	for _, c := range []struct {
		schema string
		class  opclass.Class
		says   string // a part of the error, or "" for none
	}{
		{"test::a.out(Tensor self, *, Tensor(a!) out)", opclass.Abs, ""},
		{"test::a.out(Tensor self, Scalar other, *, Tensor(a!) out)", opclass.Abs, "not the arguments of class Abs"},
		{"test::a(Tensor self) -> Tensor", opclass.Abs, "not the arguments"},
		{"test::a_(Tensor(a!) self)", opclass.Abs, "modifies no argument"},
		{"test::a.out(Tensor self, SymInt dim, *, Tensor(a!) out)", opclass.Squeeze, ""},
		{"test::a.out(Tensor self, bool x, *, Tensor(a!) out)", opclass.Copy, ""},
		{"test::a.out(Tensor? self, *, Tensor(a!) out)", opclass.Copy, "not the arguments"},
		{"test::a.out(Tensor self, *, Tensor(a!) out)", opclass.Count, "not the arguments of class unknown"},
	} {
		_, _, _, err := NewSet([]Op{{Schema: c.schema, Class: c.class}}).Lookup(c.schema[:strings.Index(c.schema, "(")])
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s of class %v: got %v, want %q", c.schema, c.class, err, c.says)
		}
	}
}
