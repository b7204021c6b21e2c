package kerneltest

import (
	"testing"

	"github.com/etrun-go/etrun/kernels"
)

// Versus benchmarks an operator on one thread against a naive loop, as [Compare] does but without
// comparing results.
func Versus(b *testing.B, name string, units int, op func(*kernels.Ctx) error, naive func()) {
	b.Run(name, func(b *testing.B) {
		c := kernels.NewCtx(nil)
		run := func() error {
			err := op(c)
			c.Release()
			return err
		}
		race(b, units, []Implementation{{Name: "operator", Run: run}, {Name: "naive", Run: func() error { naive(); return nil }}})
	})
}

// VersusCase is Versus for the operator of a case, on copies of the case's tensors.
func VersusCase(b *testing.B, set *kernels.Set, c Case, units int, naive func()) {
	b.Helper()
	k, err := c.call(set)
	if err != nil {
		b.Fatal(err)
	}
	Versus(b, c.Name, units, k.made.Do, naive)
}
