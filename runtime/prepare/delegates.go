package prepare

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/lower"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/trace"
)

// opened is a linked method whose delegates' numbers of inputs are known.
type opened struct{ links ir.Links }

// open makes an image of each delegate that has none yet, or opens its payload.
func (l *load) open(ctx context.Context, from *linked) (*opened, error) {
	links, args := from.links, l.delegateArgs(from.links)
	if err := l.survey(args); err != nil {
		return nil, l.report.Compiled(0, "", 0, err)
	}
	for i := len(l.files.images); i < len(l.Method.Delegates); i++ {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		img, err := l.openOne(ctx, i, args[i])
		if err != nil {
			return nil, l.report.Compiled(i, l.Method.Delegates[i].ID, 0, err)
		}
		l.files.images, l.files.needs = append(l.files.images, nil), append(l.files.needs, delegate.Needs{})
		if err := l.setImage(i, img); err != nil {
			return nil, err
		}
	}
	for _, n := range l.files.needs {
		links.Delegates = append(links.Delegates, ir.Delegate{Inputs: n.Inputs})
	}
	return &opened{links}, nil
}

// setImage stores and reports the image of delegate i.
func (l *load) setImage(i int, img delegate.Image) error {
	needs := img.Needs()
	l.files.images[i], l.files.needs[i] = img, needs
	l.hold(trace.MemoryPacked, needs.PackedBytes)
	return l.report.Compiled(i, l.Method.Delegates[i].ID, needs.PackedBytes, nil)
}

// openOne makes the image of delegate i.
func (l *load) openOne(ctx context.Context, i int, args []*delegate.ArgSpec) (delegate.Image, error) {
	id, payload := l.Method.Delegates[i].ID, l.payload(i, args)
	return l.image(i, payload, l.limits(), func() (delegate.Image, error) {
		if by := l.merger(id); by != nil {
			return l.openPayload(i, by, payload)
		}
		return l.Backends[id].Compile(ctx, payload)
	})
}

// image returns an image of a payload, or a placeholder.
func (l *load) image(i int, payload *delegate.Payload, left delegate.Limits, compile func() (delegate.Image, error)) (delegate.Image, error) {
	released := false
	payload.Limits = left
	payload.Release = func(data []byte) bool {
		done := l.Claims.release(data)
		released = released || done
		return done
	}
	img, err := compile()
	if err != nil {
		if lack := l.lacks(packedBytes(l.files.needs), err); lack != nil {
			return nil, lack
		}
		err = fmt.Errorf("delegate %d (%.100q): %w", i, l.Method.Delegates[i].ID, err)
		if released {
			l.files.lost = fmt.Errorf("%w; its weights were already released: open the program again to retry", err)
		}
	}
	return img, err
}

// sharedScratch returns the scratch of the first instance.
func (p *Preparation) sharedScratch() *delegate.Scratch {
	if p.scratch == nil {
		p.scratch = new(delegate.Scratch)
	}
	return p.scratch
}

// payload returns the payload of delegate i.
func (l *load) payload(i int, args []*delegate.ArgSpec) *delegate.Payload {
	d := &l.Method.Delegates[i]
	payload := &delegate.Payload{Method: l.Method.Name, Index: i, Data: d.Data, Named: l.Data, Args: args, AsWritten: l.AsWritten,
		Scratch: l.sharedScratch(), Threads: l.Pool.Size(), DescribeOnly: l.DescribeOnly}
	for _, s := range d.Specs {
		payload.Specs = append(payload.Specs, delegate.CompileSpec{Key: s.Key, Value: s.Value})
	}
	return payload
}

// survey passes all payloads of a backend to it, if it supports that, before the first is compiled.
func (l *load) survey(args [][]*delegate.ArgSpec) error {
	if len(l.files.images) > 0 { // a previous attempt did this
		return nil
	}
	payloads := make(map[string][]*delegate.Payload)
	for i := range l.Method.Delegates {
		id := l.Method.Delegates[i].ID
		payloads[id] = append(payloads[id], l.payload(i, args[i]))
	}
	for _, id := range slices.Sorted(maps.Keys(payloads)) {
		if b, ok := l.Backends[id].(delegate.Surveyor); ok {
			if err := b.Survey(payloads[id]); err != nil {
				return err
			}
		}
	}
	return nil
}

// packedPerByte is the maximum number of bytes of packed weights per byte of the file, if no limit
// is set: layouts pad small filters, and several nodes may share one.
const packedPerByte = 16

// limits bounds a further delegate of a method: working memory, and packed weights, by the memory limit or, without
// one, in proportion to the files, less the needs of the delegates of the file and of the regions that are compiled.
func (l *load) limits(regions ...delegate.Needs) delegate.Limits {
	packed := packedPerByte * min(l.FileBytes, math.MaxInt64/(2*packedPerByte))
	left := delegate.Limits{Scratch: l.Limits.Planned, Memory: packed + min(l.Limits.Planned, math.MaxInt64-packed)}
	if limit := l.Limits.Total; limit > 0 {
		left.Memory = max(limit-l.FileBytes, 1)
		left.Scratch = min(left.Scratch, left.Memory)
	}
	for _, list := range [...][]delegate.Needs{l.files.needs, regions} {
		for _, n := range list {
			left = less(left, n)
		}
	}
	if l.available > 0 {
		left.Weights = max(l.available-l.besides()-l.foldedBytes()-packedBytes(l.files.needs)-packedBytes(regions), 1)
	}
	return left
}

// less subtracts the needs of an image from limits, except memory that units share.
func less(l delegate.Limits, n delegate.Needs) delegate.Limits {
	own := n.Scratch - n.Shared
	memory := max(l.Memory-own-n.PackedBytes, 1)
	return delegate.Limits{Scratch: min(max(l.Scratch-own, 1), memory), Memory: memory}
}

// delegateArgs describes the arguments of each delegate's first call. An argument is a constant if it is the same in all calls.
func (l *load) delegateArgs(links ir.Links) [][]*delegate.ArgSpec {
	args := make([][]*delegate.ArgSpec, len(l.Method.Delegates))
	uses := l.quantUses(links)
	for c := range l.Method.Chains {
		for _, in := range l.Method.Chains[c].Instructions {
			if in.Kind != pte.DelegateCall {
				continue
			}
			if first := args[in.Index]; first != nil {
				keepConstants(first, in.Args)
				continue
			}
			args[in.Index] = make([]*delegate.ArgSpec, len(in.Args))
			for k, v := range in.Args {
				args[in.Index][k] = l.argSpec(v, links, uses)
			}
		}
	}
	return args
}

// keepConstants makes arguments of a delegate no constants if another call of it has other ones.
func keepConstants(first []*delegate.ArgSpec, args []int) {
	for k, a := range first {
		if a != nil && (k >= len(args) || args[k] != a.Value) {
			a.Const = nil
		}
	}
}

func (l *load) argSpec(v int, links ir.Links, uses map[int][]delegate.QuantUse) *delegate.ArgSpec {
	t := l.Method.Values[v].Tensor
	if l.Method.Values[v].Kind != tensor.KindTensor {
		return nil
	}
	a := &delegate.ArgSpec{Value: v, DType: t.DType, Sizes: t.Sizes, DimOrder: t.DimOrder, Dynamism: t.Dynamism, Quants: uses[v]}
	if t.Storage == pte.Constant || t.Storage == pte.External {
		a.Const = links.Data[v]
	}
	return a
}

// quantUses finds how operators quantize values, by value, without duplicates. Delegates need it
// for outputs whose declared type is stale. It returns at most two uses of one integer type, one of
// which is wrong.
func (l *load) quantUses(links ir.Links) map[int][]delegate.QuantUse {
	found := make(map[int][]delegate.QuantUse)
	for c := range l.Method.Chains {
		for i, in := range l.Method.Chains[c].Instructions {
			if in.Kind != pte.KernelCall {
				continue
			}
			o := &links.Operators[in.Index]
			if len(in.Args) != o.Sig.Slots() {
				continue // refused later
			}
			for _, q := range o.Op.Quants {
				u, ok := l.quantUse(in.Args, q)
				if v := in.Args[q.Tensor]; ok && !known(found[v], u) {
					u.By = ir.Origin{Chain: c, Index: i}.Place(o.Op.Name())
					found[v] = append(found[v], u)
				}
			}
		}
	}
	return found
}

// quantUse returns how a call with these arguments quantizes one of them. The integers are in the
// argument itself, or in the out if the argument is not of an integer type.
func (l *load) quantUse(args []int, q kernels.Quant) (u delegate.QuantUse, ok bool) {
	scale, zero := &l.Method.Values[args[q.Scale]], &l.Method.Values[args[q.ZeroPoint]]
	stored := l.Method.Values[args[q.Tensor]].Tensor
	if stored != nil && !stored.DType.IsInt() {
		stored = l.Method.Values[args[len(args)-1]].Tensor
	}
	if scale.Kind != tensor.KindDouble || zero.Kind != tensor.KindInt || stored == nil {
		return u, false
	}
	return delegate.QuantUse{Quantization: delegate.Quantization{Scale: scale.Double, ZeroPoint: zero.Int}, DType: stored.DType}, true
}

// known reports whether list contains u, or two different uses of its type.
func known(list []delegate.QuantUse, u delegate.QuantUse) bool {
	n := 0
	for i := range list {
		if list[i].DType == u.DType {
			n++
			if list[i].Quantization == u.Quantization {
				return true
			}
		}
	}
	return n > 1
}

// merger returns the backend of a delegate if its payloads are opened first, and compiled when the
// method is rewritten and lowered: the backend may open its library meanwhile. It is nil if they are
// compiled at once, as in a method without other calls.
func (l *load) merger(id string) lowering.Merger {
	b, ok := l.Backends[id].(lowering.Merger)
	if !ok {
		return nil
	}
	calls := 0
	for c := range l.Method.Chains {
		for i := range l.Method.Chains[c].Instructions {
			if k := l.Method.Chains[c].Instructions[i].Kind; k == pte.DelegateCall || k == pte.KernelCall {
				calls++
			}
		}
	}
	if calls < 2 {
		return nil
	}
	return b
}

// openPayload stores payload i after checking it, and returns a placeholder for its image.
func (l *load) openPayload(i int, by lowering.Merger, payload *delegate.Payload) (delegate.Image, error) {
	o, err := by.Open(payload)
	if err != nil {
		return nil, err
	}
	if l.files.opened == nil {
		l.files.opened = make([]*openedPayload, len(l.Method.Delegates))
	}
	l.files.opened[i] = &openedPayload{o, payload}
	return mergedImage{o.Inputs()}, nil
}

// payloads returns the payloads that lowering may merge.
func (l *load) payloads() []lower.Payload {
	list := make([]lower.Payload, len(l.files.opened))
	for i, o := range l.files.opened {
		if o != nil {
			list[i] = lower.Payload{Opened: o.Opened, Backend: l.Method.Delegates[i].ID}
		}
	}
	return list
}
