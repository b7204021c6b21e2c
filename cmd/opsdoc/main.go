// Command opsdoc writes docs/operators.md, the page of every operator, from the
// tables of the operators themselves. A test fails where the page is stale.
//
//	go run ./cmd/opsdoc
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

func main() {
	path := flag.String("o", "docs/operators.md", "file to write")
	flag.Parse()
	page, err := render(etrun.DefaultOperators())
	if err == nil {
		err = os.WriteFile(*path, page, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "opsdoc:", err)
		os.Exit(1)
	}
}

const head = `# Operators

This page is written by ` + "`go run ./cmd/opsdoc`" + ` from the tables of the operators; ` + "`etrun ops`" + ` prints the same for the build at hand.

## Numeric contract

An output passes for the exact one where |got - want| ≤ abs + rel · |want|, or both are infinite of one sign, or both are NaN.
Integer and bool outputs are exact in every family. Half floats are computed in float32 and rounded once.

| family | meant for | float32 abs, rel | float64 | float16 | bfloat16 |
|---|---|---|---|---|---|
`

const scaleNote = `
Families marked * scale abs with the largest output that the operator gives on the absolute values of its inputs: what the terms of
a sum amount to before they cancel (loose: at least 1). Sums may be added in any order and with fused multiplications, so they differ
between processors and engines; they do not depend on the number of threads. An operator of a family is often far better than its bound.
`

// families are the families of the numeric contract, with what they are meant for.
var families = []struct {
	family kernels.Family
	use    string
}{
	{kernels.Exact, "copies, indexing, comparisons, integer arithmetic, rounding, quantisation"},
	{kernels.Arith, "one correctly rounded operation, or two"},
	{kernels.Pointwise, "transcendental functions, element by element"},
	{kernels.Sum, "sums of products: matrix products, convolutions, means"},
	{kernels.Loose, "sums within transcendental functions: softmax, norms, variances, distances"},
}

// render makes the page.
func render(set *kernels.Set) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(head)
	writeFamilies(&b)
	b.WriteString(scaleNote)
	groups, err := byNamespace(set)
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		fmt.Fprintf(&b, "\n## %s\n\n%d operators.\n\n| operator | element types | family | notes |\n|---|---|---|---|\n", g.namespace, len(g.ops))
		for _, op := range g.ops {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", short(op.Schema), cell(op.DTypes), op.Family, cell(op.Note))
		}
	}
	return b.Bytes(), nil
}

func writeFamilies(w io.Writer) {
	for _, f := range families {
		name := f.family.String()
		if f.family.Scaled() {
			name += " *"
		}
		fmt.Fprintf(w, "| %s | %s |", name, f.use)
		for _, d := range []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16} {
			t := f.family.Tolerance(d, 1)
			fmt.Fprintf(w, " %.2g, %.2g |", t.Abs, t.Rel)
		}
		fmt.Fprintln(w)
	}
}

type group struct {
	namespace string
	ops       []*kernels.Op
}

// byNamespace sorts the operators by namespace and name.
func byNamespace(set *kernels.Set) (groups []group, err error) {
	names := set.Names()
	slices.Sort(names)
	for _, name := range names {
		op, _, _, err := set.Lookup(name)
		if err != nil {
			return nil, err
		}
		namespace, _, _ := strings.Cut(name, "::")
		if n := len(groups); n == 0 || groups[n-1].namespace != namespace {
			groups = append(groups, group{namespace: namespace})
		}
		g := &groups[len(groups)-1]
		g.ops = append(g.ops, op)
	}
	return groups, nil
}

// short is a schema without its namespace, which the heading gives.
func short(schema string) string {
	_, rest, _ := strings.Cut(schema, "::")
	return cell(rest)
}

// cell makes text fit for a table's cell.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
