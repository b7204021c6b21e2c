package kerneltest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/etrun-go/etrun/internal/cputime"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Time limits: a call whose arguments have a few thousand elements may take patience; one that
// takes longer than hang stops the whole test.
const (
	patience = 5 * time.Second
	hang     = time.Minute
)

// Random calls every operator of the set with arguments that once broke one, and then n times with
// arguments derived at random from its schema and from calls of real programs, most of them
// invalid, and checks the contract of [kernels.Func]. The calls are the same in every run; with -short
// there are a quarter of them.
func Random(t *testing.T, set *kernels.Set, n int) {
	t.Helper()
	if testing.Short() {
		n /= 4
	}
	for _, name := range set.Names() {
		t.Run(name, func(t *testing.T) {
			t.Helper()
			for _, args := range hostile()[name] {
				if _, err := attemptCall(set, name, args, nil); err != nil {
					t.Error(err)
				}
			}
			random := rand.New(rand.NewPCG(uint64(len(name)), 1))
			accepted := 0
			for i := range n {
				ok, err := attempt(set, name, seed(random))
				if err != nil {
					t.Fatalf("call %d: %v", i, err)
				}
				if ok {
					accepted++
				}
			}
			t.Logf("%d of %d calls accepted", accepted, n)
		})
	}
}

// Fuzz is [Random] with arguments generated from the fuzzer's bytes.
func Fuzz(f *testing.F, set *kernels.Set) {
	f.Helper()
	names := set.Names()
	random := rand.New(rand.NewPCG(3, 4))
	for i := range names {
		f.Add(uint16(i), seed(random))
	}
	f.Fuzz(func(t *testing.T, op uint16, data []byte) {
		if _, err := attempt(set, names[int(op)%len(names)], data); err != nil {
			t.Fatal(err)
		}
	})
}

// seed returns enough bytes for the arguments of any operator.
func seed(random *rand.Rand) []byte {
	b := make([]byte, 128)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

// attempt makes one call from data.
func attempt(set *kernels.Set, name string, data []byte) (accepted bool, broken error) {
	_, sig, _, err := set.Lookup(name)
	if err != nil {
		return false, err
	}
	g := newGenerator(data)
	args, result := g.call(sig)
	if real := calls()[name]; len(real) > 0 && !g.chance(4) {
		args, result = g.mutate(sig, pick(g, real), g.below(4))
	}
	return attemptCall(set, name, args, result)
}

// attemptCall makes a call and, if the operator requests other out sizes, repeats it with them.
func attemptCall(set *kernels.Set, name string, args []any, result *tensor.Tensor) (accepted bool, broken error) {
	_, sig, _, err := set.Lookup(name)
	if err != nil {
		return false, err
	}
	args = slices.Clone(args)
	for range len(args) + 1 {
		k, err := newCall(set, name, args, result)
		if err != nil {
			return false, err
		}
		start := cputime.Process()
		watch := time.AfterFunc(hang, func() { panic("endless call: " + k.text) })
		ctx := kernels.NewCtx(nil)
		refused, broken := k.run(ctx)
		if broken == nil {
			broken = k.twice(ctx, refused)
		}
		watch.Stop()
		if broken != nil {
			return false, broken
		}
		if d := cputime.Process() - start; d > patience {
			return false, &violation{Call: k.text, What: fmt.Sprintf("took %v", d)}
		}
		if refused == nil {
			return true, nil
		}
		if !refit(args, sig, refused) {
			break
		}
	}
	return false, nil
}

// refit resizes the out in an error to the sizes that the error requests.
func refit(args []any, sig *kernels.Signature, refused error) bool {
	var out *kernels.OutError
	var size *tensor.ResizeError
	if !errors.As(refused, &out) || !errors.As(refused, &size) || out.Arg >= len(args) || !sig.Args[out.Arg].Out {
		return false
	}
	t, ok := args[out.Arg].(*tensor.Tensor)
	n, fits := tensor.Product(size.To)
	if !ok || !fits || n > maxElements || len(size.To) > tensor.MaxRank {
		return false
	}
	args[out.Arg] = tensor.Make(t.DType, size.To, nil, tensor.Static)
	return true
}

// Table checks the entries of a set: schemas must parse and have an out or a result, the columns used by the
// documentation must be set, and the operator must compute the results of calls that were made elsewhere, by PyTorch or
// from the operator's definition. This package has such calls of the operators of ATen; cases has those of others. Only
// operators that draw random numbers need none.
func Table(t *testing.T, set *kernels.Set, cases ...Case) {
	t.Helper()
	for _, name := range set.Names() {
		op, sig, _, err := set.Lookup(name)
		if err == nil {
			err = checkRow(op, sig)
		}
		if err == nil && !op.Random {
			err = checkExpected(set, name, sig, cases)
		}
		if err == nil {
			err = checkFacts(set, op, sig, cases)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// checkFacts checks what the row says about the function.
func checkFacts(set *kernels.Set, op *kernels.Op, sig *kernels.Signature, cases []Case) error {
	if op.Random {
		return nil
	}
	calls, err := expectedCases(op.Name(), sig, cases)
	if err != nil {
		return err
	}
	return errors.Join(checkMoves(set, op, sig, calls), checkClass(set, op, sig))
}

func checkRow(op *kernels.Op, sig *kernels.Signature) error {
	writes := false
	for _, a := range sig.Args {
		writes = writes || a.Out || a.Mutated
	}
	switch {
	case op.Func == nil:
		return errors.New("no function")
	case op.DTypes == "":
		return errors.New("no element types named")
	case !writes && sig.Result == nil:
		return errors.New("schema with neither an out, nor a mutated argument, nor a result")
	case writes && sig.Result != nil:
		return errors.New("schema with both an out and a result: the slot after an out is the out again")
	case op.Pure && op.Random:
		return errors.New("pure, though it draws random numbers")
	}
	return checkQuants(op, sig)
}

// checkQuants checks an entry's Quants against its schema.
func checkQuants(op *kernels.Op, sig *kernels.Signature) error {
	for _, q := range op.Quants {
		for i, want := range map[int]string{q.Tensor: "Tensor", q.Scale: "float", q.ZeroPoint: "int"} {
			if i < 0 || i >= len(sig.Args) || sig.Args[i].Type != want {
				return fmt.Errorf("argument %d is no %s, as its Quants say", i, want)
			}
		}
	}
	return nil
}
