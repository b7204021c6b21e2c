package kerneltest

import (
	_ "embed"
	"errors"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var (
	//go:embed testdata/calls.txt
	callsText string
	//go:embed testdata/hostile.txt
	hostileText string

	// calls are calls from real programs, by operator.
	calls = sync.OnceValue(func() map[string][][]any { return parseCalls(callsText) })
	// hostile are calls that once broke an operator.
	hostile = sync.OnceValue(func() map[string][][]any { return parseCalls(hostileText) })
)

func parseCalls(text string) map[string][][]any {
	m := make(map[string][][]any)
	for line := range strings.Lines(text) {
		op, args, err := ParseCall(strings.TrimSpace(line))
		if errors.Is(err, strconv.ErrRange) && bits.UintSize == 32 {
			continue // sizes that only an int of 64 bits holds
		}
		if err != nil {
			panic(err) // an error in the embedded list
		}
		m[op] = append(m[op], args)
	}
	return m
}

// Calls executes the calls of real programs for every operator of the set that is in the list, and
// checks that they succeed.
func Calls(t *testing.T, set *kernels.Set) {
	t.Helper()
	for _, name := range set.Names() {
		for _, args := range calls()[name] {
			g := newGenerator(nil)
			_, sig, _, err := set.Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			args, result := g.mutate(sig, args, 0)
			k, err := newCall(set, name, args, result)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			refused, broken := k.run(kernels.NewCtx(nil))
			if broken != nil {
				t.Error(broken)
			} else if refused != nil {
				t.Errorf("%s: %v", k.text, refused)
			}
		}
	}
}

// mutate copies the arguments of a real call, fills its tensors and makes n changes. If the listed
// call does not match the signature, it generates one.
func (g *generator) mutate(sig *kernels.Signature, from []any, n int) (args []any, result *tensor.Tensor) {
	if len(from) == len(sig.Args)+1 {
		result, _ = from[len(sig.Args)].(*tensor.Tensor)
		from = from[:len(sig.Args)]
	}
	if len(from) != len(sig.Args) {
		return g.call(sig)
	}
	args = make([]any, len(from))
	for i, a := range from {
		args[i] = g.copy(a)
	}
	for range n {
		g.change(sig, args)
	}
	return args, result
}

// copy copies tensors; floating-point tensors, whose elements are not listed, are filled.
func (g *generator) copy(a any) any {
	switch a := a.(type) {
	case *tensor.Tensor:
		return g.copyTensor(a)
	case []*tensor.Tensor:
		list := make([]*tensor.Tensor, len(a))
		for i, t := range a {
			if t != nil {
				list[i] = g.copyTensor(t)
			}
		}
		return list
	case []int64:
		return slices.Clone(a)
	}
	return a
}

func (g *generator) copyTensor(t *tensor.Tensor) *tensor.Tensor {
	c := g.remade(t, t.DType, t.Sizes, t.DimOrder)
	if kernels.Epsilon(t.DType) > 0 {
		return c
	}
	copy(c.Data, t.Data)
	if t.DType.IsInt() && !slices.ContainsFunc(c.Data, func(b byte) bool { return b != 0 }) && t.Numel() > maxShown {
		// not in the list, so ones: no divisor is 0, and most indices may be 1
		size := t.DType.Size()
		for i := range t.Numel() {
			tensor.Put[int64](c.Data[i*size:], t.DType, 1)
		}
	}
	return c
}

// remade returns a filled tensor like t with another type and sizes.
func (g *generator) remade(t *tensor.Tensor, d tensor.DType, sizes []int, order []uint8) *tensor.Tensor {
	sizes = capped(slices.Clone(sizes))
	c := tensor.Make(d, sizes, order, t.Dynamism)
	if t.Dynamism != tensor.Static {
		c.Limit(t.Capacity())
	}
	c.Bind(tensor.AlignedBytes(c.NBytes()))
	g.fill(c)
	return c
}

// change makes one change: to the type of all tensors that share one, to a size wherever it occurs,
// or to an argument.
func (g *generator) change(sig *kernels.Signature, args []any) {
	switch g.below(4) {
	case 0:
		from, to := g.anyTensor(args).DType, pick(g, usualTypes)
		g.everyTensor(args, func(t *tensor.Tensor) *tensor.Tensor {
			if t.DType != from {
				return t
			}
			return g.remade(t, to, t.Sizes, t.DimOrder)
		})
	case 1:
		t := g.anyTensor(args)
		if t.Rank() == 0 {
			return
		}
		from := pick(g, t.Sizes)
		to := pick(g, []int{0, 1, 2, from + 1, 2 * from, from - 1, 3, 7})
		g.everyTensor(args, func(t *tensor.Tensor) *tensor.Tensor { return g.resized(t, from, to) })
	default:
		i := g.below(max(len(args), 1))
		if i < len(args) {
			args[i] = g.changed(&sig.Args[i], args[i])
		}
	}
}

// resized replaces a size of a tensor wherever it occurs.
func (g *generator) resized(t *tensor.Tensor, from, to int) *tensor.Tensor {
	sizes := slices.Clone(t.Sizes)
	for d, s := range sizes {
		if s == from {
			sizes[d] = max(to, 0)
		}
	}
	if n, ok := tensor.Product(sizes); !ok || n > maxElements || slices.Equal(sizes, t.Sizes) {
		return t
	}
	return g.remade(t, t.DType, sizes, t.DimOrder)
}

// changed returns another value for one argument.
func (g *generator) changed(arg *kernels.Arg, a any) any {
	t, ok := a.(*tensor.Tensor)
	if !ok || g.chance(4) {
		return g.argument(arg)
	}
	switch g.below(5) {
	case 0:
		return g.remade(t, pick(g, usualTypes), t.Sizes, t.DimOrder)
	case 1:
		return g.remade(t, t.DType, t.Sizes, g.order(t.Rank()))
	case 2: // other elements
		return g.remade(t, t.DType, t.Sizes, t.DimOrder)
	case 3: // add or remove a dimension
		if g.chance(2) && t.Rank() > 0 {
			return g.remade(t, t.DType, capped(slices.Clone(t.Sizes[1:])), nil) // an empty tensor has any other sizes
		}
		return g.remade(t, t.DType, append([]int{1}, t.Sizes...), nil)
	}
	if t.Rank() == 0 {
		return t
	}
	sizes := slices.Clone(t.Sizes)
	sizes[g.below(len(sizes))] = g.below(6)
	return g.remade(t, t.DType, sizes, t.DimOrder)
}

// anyTensor returns one of the tensors among the arguments.
func (g *generator) anyTensor(args []any) *tensor.Tensor {
	all := []*tensor.Tensor{}
	g.everyTensor(args, func(t *tensor.Tensor) *tensor.Tensor {
		all = append(all, t)
		return t
	})
	if len(all) == 0 {
		return tensor.New(g.dtype)
	}
	return pick(g, all)
}

// everyTensor replaces each tensor among the arguments.
func (g *generator) everyTensor(args []any, f func(*tensor.Tensor) *tensor.Tensor) {
	for i, a := range args {
		switch a := a.(type) {
		case *tensor.Tensor:
			args[i] = f(a)
		case []*tensor.Tensor:
			for j, t := range a {
				if t != nil {
					a[j] = f(t)
				}
			}
		}
	}
}
