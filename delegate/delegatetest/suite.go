package delegatetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Run is the conformance suite of backends. It compiles each payload and calls units of it on random arguments of the
// declared sizes and, if arguments are dynamic, of smaller ones. A unit must compute what a new unit computes that
// has not run before, whatever it did until then. See rules for what is checked. Results are not compared with
// expected ones: these are the backend's own tests.
func Run(t *testing.T, b delegate.Backend, payloads ...*delegate.Payload) {
	t.Helper()
	if len(payloads) == 0 {
		t.Fatal("no payloads: the suite shows nothing")
	}
	for _, p := range payloads {
		for _, r := range rules {
			t.Run(fmt.Sprintf("%s %d/%s", p.Method, p.Index, r.name), func(t *testing.T) {
				if err := r.check(b, p); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// rules are the parts of the suite.
var rules = []struct {
	name  string
	check func(b delegate.Backend, p *delegate.Payload) error
}{
	{"description", checkDescription},
	{"damaged payloads", checkDamage},
	{"limits", checkLimits},
	{"needs", compiled((*subject).checkNeeds)},
	{"sizes", compiled((*subject).checkSizes)},
	{"memory", compiled((*subject).checkMemory)},
	{"arguments", compiled((*subject).checkArguments)},
	{"state", compiled((*subject).checkState)},
	{"units", compiled((*subject).checkUnits)},
	{"canceled runs", compiled((*subject).checkCanceled)},
	{"profiles", compiled((*subject).checkProfile)},
	{"allocations", compiled((*subject).checkAllocations)},
	{"workspace", compiled((*subject).checkWorkspace)},
}

// subject is a compiled payload.
type subject struct {
	p     *delegate.Payload
	img   delegate.Image
	needs delegate.Needs
}

// compiled makes a rule of a check of an image, which it compiles and closes.
func compiled(check func(s *subject) error) func(b delegate.Backend, p *delegate.Payload) error {
	return func(b delegate.Backend, p *delegate.Payload) (err error) {
		img, err := b.Compile(context.Background(), p)
		if err != nil {
			return err
		}
		defer func() {
			if e := img.Close(); err == nil && e != nil {
				err = fmt.Errorf("closing the image: %w", e)
			}
		}()
		s := &subject{p: p, img: img, needs: img.Needs()}
		if n := s.needs.Inputs; n < 0 || n > len(p.Args) {
			return fmt.Errorf("%d inputs of %d arguments", n, len(p.Args))
		}
		return check(s)
	}
}

// sample is a call: the seed of its inputs, and the share of the declared sizes of dynamic arguments, in quarters.
type sample struct {
	seed  uint64
	share int
}

// samples are calls that differ in contents and, if the payload allows that, in sizes.
func (s *subject) samples() []sample {
	if !s.isDynamic() {
		return []sample{{1, 4}, {2, 4}, {1, 4}, {3, 4}}
	}
	return []sample{{1, 4}, {2, 2}, {1, 4}, {3, 1}, {2, 2}, {4, 4}}
}

// isDynamic reports whether the sizes of arguments vary.
func (s *subject) isDynamic() bool {
	return slices.ContainsFunc(s.p.Args, func(a *delegate.ArgSpec) bool { return a != nil && a.Dynamism != tensor.Static })
}

// guarded is an argument with bytes around its memory that no unit may write.
type guarded struct {
	*tensor.Value
	all []byte
	own int // bytes of the argument
}

// arguments are those of a call.
type arguments []guarded

// newArguments allocates arguments of the declared sizes.
func (s *subject) newArguments() (list arguments) {
	for _, a := range s.p.Args {
		if a == nil {
			list = append(list, guarded{Value: new(tensor.Value)})
			continue
		}
		t := tensor.Make(a.DType, a.Sizes, a.DimOrder, a.Dynamism)
		g := guarded{own: t.NBytes(), Value: new(tensor.TensorValue(t))}
		if a.Const != nil {
			t.Const = true
			t.Bind(a.Const)
		} else {
			size := (g.own + tensor.Alignment - 1) &^ (tensor.Alignment - 1)
			g.all = tensor.AlignedBytes(size + 2*guardBytes)
			for i := range g.all {
				g.all[i] = guard
			}
			t.Bind(g.all[guardBytes : guardBytes+g.own])
		}
		list = append(list, g)
	}
	return list
}

// values returns the arguments as a unit receives them.
func (list arguments) values() (args []*tensor.Value) {
	for i := range list {
		args = append(args, list[i].Value)
	}
	return args
}

// set fills the inputs with those of a sample, and the memory of outputs with a byte. Outputs keep their sizes.
func (list arguments) set(s *subject, x sample, fill byte) error {
	r := rand.New(rand.NewPCG(x.seed, 1))
	for i := range list {
		switch {
		case list[i].all == nil:
		case i >= s.needs.Inputs:
			for k := range list[i].own {
				list[i].all[guardBytes+k] = fill
			}
		default:
			if err := list[i].random(r, s.p.Args[i], x.share); err != nil {
				return err
			}
		}
	}
	return nil
}

// random sets the sizes and elements of an input: floats of at most 1, bytes of any value, other integers that may be
// indices.
func (g guarded) random(r *rand.Rand, a *delegate.ArgSpec, share int) error {
	t := g.Tensor
	if a.Dynamism != tensor.Static && len(a.Sizes) > 0 {
		sizes := slices.Clone(a.Sizes)
		sizes[0] = max(sizes[0]*share/4, 1)
		if err := t.Resize(sizes); err != nil {
			return err
		}
	}
	size := t.DType.Size()
	for k := 0; k+size <= len(t.Data); k += size {
		switch {
		case t.DType.IsFloat():
			tensor.Put(t.Data[k:], t.DType, 2*r.Float64()-1)
		case size == 1 && t.DType != tensor.Bool:
			t.Data[k] = byte(r.Uint32())
		default:
			tensor.Put(t.Data[k:], t.DType, float64(r.IntN(2)))
		}
	}
	return nil
}

// result is what a call leaves.
type result struct {
	failed bool
	sizes  [][]int
	data   [][]byte
}

// run executes a unit. It fails if the unit writes anything but outputs.
func (s *subject) run(ctx context.Context, u delegate.Unit, list arguments) (r result, err error) {
	before := list.contents(0, s.needs.Inputs)
	r.failed = u.Execute(ctx, list.values()) != nil
	for i, b := range list.contents(0, s.needs.Inputs) {
		if !bytes.Equal(b, before[i]) {
			return r, fmt.Errorf("input %d of %d was written", i, s.needs.Inputs)
		}
	}
	for i := range list {
		if err := list[i].intact(); err != nil {
			return r, fmt.Errorf("argument %d: %w", i, err)
		}
	}
	if r.failed {
		return r, nil
	}
	r.data = list.contents(s.needs.Inputs, len(list))
	for _, a := range list[s.needs.Inputs:] {
		if a.Tensor != nil {
			r.sizes = append(r.sizes, slices.Clone(a.Tensor.Sizes))
		}
	}
	return r, nil
}

// contents returns copies of the elements of arguments.
func (list arguments) contents(from, to int) (data [][]byte) {
	for _, a := range list[from:to] {
		if a.Tensor != nil {
			data = append(data, slices.Clone(a.Tensor.Data))
		}
	}
	return data
}

// intact returns an error if bytes around the argument have changed.
func (g guarded) intact() error {
	if g.all == nil {
		return nil
	}
	for i, b := range g.all {
		if (i < guardBytes || i >= guardBytes+g.own) && b != guard {
			return fmt.Errorf("byte %d of %d was written", i-guardBytes, g.own)
		}
	}
	return nil
}

// equal returns an error if a result is not the expected one.
func (r result) equal(want result) error {
	if r.failed != want.failed {
		return fmt.Errorf("failed: %v, a new unit: %v", r.failed, want.failed)
	}
	for i := range want.sizes {
		if !slices.Equal(r.sizes[i], want.sizes[i]) {
			return fmt.Errorf("output %d has the sizes %v, of a new unit %v", i, r.sizes[i], want.sizes[i])
		}
		if !bytes.Equal(r.data[i], want.data[i]) {
			return fmt.Errorf("output %d has other elements than that of a new unit", i)
		}
	}
	return nil
}

// unit creates a unit with memory of its own.
func (s *subject) unit() (delegate.Unit, error) { return s.img.Unit(delegate.Instance{}) }

// want returns the result of a new unit on new arguments.
func (s *subject) want(x sample) (result, error) {
	u, err := s.unit()
	if err != nil {
		return result{}, err
	}
	defer u.Close()
	list := s.newArguments()
	if err := list.set(s, x, 0); err != nil {
		return result{}, err
	}
	r, err := s.run(context.Background(), u, list)
	if err == nil && r.failed && x.share == 4 {
		err = errors.New("a call at the declared sizes failed")
	}
	return r, err
}

// compare runs a unit and compares the result with that of a new unit.
func (s *subject) compare(u delegate.Unit, list arguments, x sample, fill byte) error {
	want, err := s.want(x)
	if err != nil {
		return err
	}
	if err := list.set(s, x, fill); err != nil {
		return err
	}
	got, err := s.run(context.Background(), u, list)
	if err != nil {
		return err
	}
	return got.equal(want)
}

// each calls check for each sample with one unit.
func (s *subject) each(check func(u delegate.Unit, x sample) error) error {
	u, err := s.unit()
	if err != nil {
		return err
	}
	for i, x := range s.samples() {
		if err := check(u, x); err != nil {
			u.Close()
			return fmt.Errorf("call %d: %w", i, err)
		}
	}
	return u.Close()
}

// checkDescription requires that compiling leaves the payload as it is, and that the image describes itself.
func checkDescription(b delegate.Backend, p *delegate.Payload) error {
	before := bytes.Clone(p.Data)
	return compiled(func(s *subject) error {
		switch n := s.needs; {
		case !bytes.Equal(before, p.Data):
			return errors.New("compiling changed the payload")
		case s.img.Info().Needs != n:
			return fmt.Errorf("Info describes the needs %+v, Needs %+v", s.img.Info().Needs, n)
		case n.Scratch < 0 || n.PackedBytes < 0 || n.Profiling < 0 || n.Shared < 0 || n.Shared > n.Scratch:
			return fmt.Errorf("needs %+v: negative, or more shared than there is", n)
		}
		return nil
	})(b, p)
}

// damages is the number of damaged payloads of each kind.
const damages = 32

// damageLimit bounds the memory of damaged payloads.
const damageLimit = 64 << 20

// checkDamage compiles payloads that are cut off or have a wrong byte. Errors must have a reason.
func checkDamage(b delegate.Backend, p *delegate.Payload) error {
	r := rand.New(rand.NewPCG(uint64(len(p.Data)), 2))
	for i := range 2 * damages {
		damaged := *p
		damaged.Limits = delegate.Limits{Scratch: damageLimit, Memory: damageLimit}
		if i < damages {
			damaged.Data = p.Data[:len(p.Data)*i/damages]
		} else if damaged.Data = bytes.Clone(p.Data); len(p.Data) > 0 {
			damaged.Data[r.IntN(len(p.Data))] ^= byte(1 + r.IntN(255))
		}
		if err := compileDamaged(b, &damaged); err != nil {
			return fmt.Errorf("damaged payload %d of %d bytes: %w", i, len(damaged.Data), err)
		}
	}
	return nil
}

func compileDamaged(b delegate.Backend, p *delegate.Payload) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("panic: %v\n%s", fault, debug.Stack())
		}
	}()
	img, err := b.Compile(context.Background(), p)
	if err == nil {
		return img.Close()
	}
	for _, reason := range []error{delegate.ErrPayload, delegate.ErrUnsupported, delegate.ErrMissing, delegate.ErrMemory} {
		if errors.Is(err, reason) {
			return nil
		}
	}
	return fmt.Errorf("an error without a reason: %w", err)
}

// checkLimits compiles with less memory than the image needs. It must fail, or need less; if the sizes of arguments vary, calls may fail instead.
func checkLimits(b delegate.Backend, p *delegate.Payload) error {
	var needs delegate.Needs
	one := *p
	one.Threads = 1 // as units without a pool have
	if err := compiled(func(s *subject) error { needs = s.needs; return nil })(b, &one); err != nil {
		return err
	}
	for _, l := range []delegate.Limits{{Scratch: needs.Scratch - 1}, {Memory: needs.Scratch + needs.PackedBytes - 1}, {Weights: needs.PackedBytes - 1}} {
		if max(l.Scratch, l.Memory, l.Weights) <= 0 {
			continue
		}
		limited := one
		limited.Limits = delegate.Limits{Scratch: max(l.Scratch, 0), Memory: max(l.Memory, 0), Weights: max(l.Weights, 0)}
		img, err := b.Compile(context.Background(), &limited)
		if err != nil {
			if !errors.Is(err, delegate.ErrMemory) {
				return fmt.Errorf("limits %+v: got %w, want %w", limited.Limits, err, delegate.ErrMemory)
			}
			continue
		}
		s := &subject{p: &limited, img: img, needs: img.Needs()}
		above := limited.Limits.Check(b.ID(), s.needs.PackedBytes, s.needs.Scratch)
		if above != nil && s.isDynamic() {
			above = s.checkRefused()
		}
		img.Close()
		if above != nil {
			return fmt.Errorf("compiled for the limits %+v: %w", limited.Limits, above)
		}
	}
	return nil
}

// checkRefused calls a unit with arguments of the declared sizes, which need more memory than the limits allow.
func (s *subject) checkRefused() error {
	u, err := s.unit()
	if err != nil {
		return err
	}
	defer u.Close()
	list := s.newArguments()
	if err := list.set(s, s.samples()[0], guard); err != nil {
		return err
	}
	if err := u.Execute(context.Background(), list.values()); !errors.Is(err, delegate.ErrMemory) {
		return fmt.Errorf("a call that needs more: got %w, want %w", err, delegate.ErrMemory)
	}
	return nil
}

// needsSlack is what a unit may allocate beside its working memory: tables, arguments, errors.
const needsSlack = 256 << 10

// checkNeeds compares the declared needs with a run: inputs are read only, outputs are written, and the memory that a
// unit allocates is no more than declared.
func (s *subject) checkNeeds() error {
	least := int64(1 << 62)
	for range 3 { // other goroutines allocate too
		list := s.newArguments()
		if err := list.set(s, sample{1, 4}, 0); err != nil {
			return err
		}
		args := list.values()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		u, err := s.unit()
		if err != nil {
			return err
		}
		err = u.Execute(context.Background(), args)
		runtime.ReadMemStats(&after)
		if err := errors.Join(err, u.Close()); err != nil {
			return err
		}
		least = min(least, int64(after.TotalAlloc-before.TotalAlloc))
	}
	if least > s.needs.Scratch+needsSlack {
		return fmt.Errorf("a unit allocated %d bytes, declared are %d", least, s.needs.Scratch)
	}
	return s.each(func(u delegate.Unit, x sample) error { return s.compare(u, s.newArguments(), x, 0xFF) })
}

// checkSizes calls a unit on the same tensors at varying sizes: those of outputs are stale before each call.
func (s *subject) checkSizes() error {
	list := s.newArguments()
	return s.each(func(u delegate.Unit, x sample) error { return s.compare(u, list, x, 0) })
}

// checkMemory requires that all elements of outputs are written, and nothing else.
func (s *subject) checkMemory() error {
	return s.each(func(u delegate.Unit, x sample) error {
		return errors.Join(s.compare(u, s.newArguments(), x, 0x5A), s.compare(u, s.newArguments(), x, 0xA5))
	})
}

// checkArguments calls a unit on other tensors each time. It must not write those of earlier calls.
func (s *subject) checkArguments() error {
	var earlier []arguments
	var contents [][][]byte
	return s.each(func(u delegate.Unit, x sample) error {
		list := s.newArguments()
		if err := s.compare(u, list, x, 0); err != nil {
			return err
		}
		for k := range earlier {
			for i, b := range earlier[k].contents(0, len(list)) {
				if !bytes.Equal(b, contents[k][i]) {
					return fmt.Errorf("argument %d of call %d was written again", i, k)
				}
			}
		}
		earlier, contents = append(earlier, list), append(contents, list.contents(0, len(list)))
		return nil
	})
}

// checkState repeats calls in other orders: a call must not depend on the ones before.
func (s *subject) checkState() error {
	list, samples := s.newArguments(), s.samples()
	u, err := s.unit()
	if err != nil {
		return err
	}
	defer u.Close()
	for i := range 3 * len(samples) {
		if err := s.compare(u, list, samples[i*5%len(samples)], byte(i)); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
	}
	return nil
}

// checkUnits runs two units of the image in turn, and several at once.
func (s *subject) checkUnits() error {
	other, err := s.unit()
	if err != nil {
		return err
	}
	defer other.Close()
	samples := s.samples()
	err = s.each(func(u delegate.Unit, x sample) error {
		return errors.Join(s.compare(u, s.newArguments(), x, 0), s.compare(other, s.newArguments(), samples[1], 0))
	})
	if err != nil {
		return fmt.Errorf("two units in turn: %w", err)
	}
	failures := make([]error, 4)
	var wait sync.WaitGroup
	for i := range failures {
		wait.Go(func() {
			failures[i] = s.each(func(u delegate.Unit, x sample) error { return s.compare(u, s.newArguments(), x, 0) })
		})
	}
	wait.Wait()
	return errors.Join(failures...)
}

// checkCanceled runs a unit with a canceled context, and then with another.
func (s *subject) checkCanceled() error {
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	list := s.newArguments()
	return s.each(func(u delegate.Unit, x sample) error {
		if err := list.set(s, x, 0); err != nil {
			return err
		}
		if _, err := s.run(canceled, u, list); err != nil {
			return err
		}
		return s.compare(u, list, x, 0)
	})
}

// checkProfile measures nodes, if the units support that.
func (s *subject) checkProfile() error {
	list := s.newArguments()
	return s.each(func(u delegate.Unit, x sample) error {
		p, ok := u.(delegate.Profiler)
		if !ok {
			return nil
		}
		for _, on := range []bool{true, false} {
			if err := errors.Join(p.SetProfiling(on), s.compare(u, list, x, 0)); err != nil {
				return fmt.Errorf("measured %v: %w", on, err)
			}
			for _, node := range p.Profile(nil) {
				if node.Duration < 0 {
					return fmt.Errorf("node %q ran for %v", node.Name, node.Duration)
				}
			}
		}
		return nil
	})
}

// checkAllocations requires that calls allocate nothing after the first.
func (s *subject) checkAllocations() error {
	u, err := s.unit()
	if err != nil {
		return err
	}
	defer u.Close()
	list := s.newArguments()
	if err := list.set(s, sample{1, 4}, 0); err != nil {
		return err
	}
	args := list.values()
	n := testing.AllocsPerRun(10, func() {
		if e := u.Execute(context.Background(), args); e != nil {
			err = e
		}
	})
	if err == nil && n > 0 {
		err = fmt.Errorf("%v allocations in each call", n)
	}
	return err
}
