package etrun

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/trace"
)

// compile makes an image of each delegate that has none yet. If the preparation fails later, the
// next attempt reuses the images.
func (p *preparation) compile(ctx context.Context, w *watch, links ir.Links) error {
	args, left := p.delegateArgs(links), p.delegateLimits()
	for _, n := range p.needs {
		left = less(left, n)
	}
	if err := p.survey(args); err != nil {
		return w.stageOf(trace.StageCompile, 0, "", 0, err)
	}
	for i := len(p.images); i < len(p.spec.Delegates); i++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		id := p.spec.Delegates[i].ID
		img, err := p.compileOne(ctx, i, args[i], left)
		if err != nil {
			return w.stageOf(trace.StageCompile, i, id, 0, err)
		}
		p.images, p.needs = append(p.images, img), append(p.needs, img.Needs())
		left = less(left, p.needs[i])
		p.hold(w, trace.MemoryPacked, p.needs[i].PackedBytes)
		if err := w.stageOf(trace.StageCompile, i, id, p.needs[i].PackedBytes, nil); err != nil {
			return err
		}
	}
	return nil
}

// compileOne makes the image of delegate i.
func (p *preparation) compileOne(ctx context.Context, i int, args []*delegate.ArgSpec, left delegate.Limits) (delegate.Image, error) {
	if p.lost != nil {
		return nil, p.lost
	}
	id, payload := p.spec.Delegates[i].ID, p.payload(i, args)
	return p.image(i, payload, left, func() (delegate.Image, error) {
		if by := p.merger(id); by != nil {
			return p.open(i, by, payload)
		}
		return p.config.backends[id].Compile(ctx, payload)
	})
}

// image returns an image of a payload, or a placeholder.
func (p *preparation) image(i int, payload *delegate.Payload, left delegate.Limits, compile func() (delegate.Image, error)) (delegate.Image, error) {
	gone := false
	payload.Limits = left
	payload.Release = func(data []byte) bool {
		done := p.discard(data)
		gone = gone || done
		return done
	}
	img, err := compile()
	if err != nil {
		err = fmt.Errorf("delegate %d (%.100q): %w", i, p.spec.Delegates[i].ID, err)
		if gone {
			p.lost = fmt.Errorf("%w; its weights were already released: open the program again to retry", err)
		}
	}
	return img, err
}

// sharedScratch returns the scratch of the first instance.
func (p *preparation) sharedScratch() *delegate.Scratch {
	if p.scratch == nil {
		p.scratch = new(delegate.Scratch)
	}
	return p.scratch
}

// payload returns the payload of delegate i.
func (p *preparation) payload(i int, args []*delegate.ArgSpec) *delegate.Payload {
	d := &p.spec.Delegates[i]
	payload := &delegate.Payload{Method: p.spec.Name, Index: i, Data: d.Data, Named: p.data, Args: args, AsWritten: p.config.asWritten,
		Scratch: p.sharedScratch(), Threads: p.pool.Size()}
	for _, s := range d.Specs {
		payload.Specs = append(payload.Specs, delegate.CompileSpec{Key: s.Key, Value: s.Value})
	}
	return payload
}

// survey passes all payloads of a backend to it, if it supports that, before the first is compiled.
func (p *preparation) survey(args [][]*delegate.ArgSpec) error {
	if len(p.images) > 0 || p.lost != nil { // a previous attempt did this
		return nil
	}
	payloads := make(map[string][]*delegate.Payload)
	for i := range p.spec.Delegates {
		id := p.spec.Delegates[i].ID
		payloads[id] = append(payloads[id], p.payload(i, args[i]))
	}
	for _, id := range slices.Sorted(maps.Keys(payloads)) {
		if b, ok := p.config.backends[id].(delegate.Surveyor); ok {
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

// delegateLimits bounds a method's delegates together: working memory, and packed weights, by the
// memory limit or, without one, in proportion to the files.
func (p *preparation) delegateLimits() delegate.Limits {
	l := delegate.Limits{Scratch: p.config.limits.PlannedBytes, Memory: packedPerByte*p.fileBytes + p.config.limits.PlannedBytes}
	if limit := p.config.maxMemory; limit > 0 {
		l.Memory = max(limit-p.fileBytes, 1)
		l.Scratch = min(l.Scratch, l.Memory)
	}
	return l
}

// less subtracts the needs of an image from limits, except memory that units share.
func less(l delegate.Limits, n delegate.Needs) delegate.Limits {
	own := n.Scratch - n.Shared
	memory := max(l.Memory-own-n.PackedBytes, 1)
	return delegate.Limits{Scratch: min(max(l.Scratch-own, 1), memory), Memory: memory}
}

// delegateArgs describes the arguments of each delegate's first call.
func (p *preparation) delegateArgs(links ir.Links) [][]*delegate.ArgSpec {
	args := make([][]*delegate.ArgSpec, len(p.spec.Delegates))
	uses := p.quantUses(links)
	for c := range p.spec.Chains {
		for _, in := range p.spec.Chains[c].Instructions {
			if in.Kind != pte.DelegateCall || args[in.Index] != nil {
				continue
			}
			args[in.Index] = make([]*delegate.ArgSpec, len(in.Args))
			for k, v := range in.Args {
				args[in.Index][k] = p.argSpec(v, links, uses)
			}
		}
	}
	return args
}

func (p *preparation) argSpec(v int, links ir.Links, uses map[int][]delegate.QuantUse) *delegate.ArgSpec {
	t := p.spec.Values[v].Tensor
	if p.spec.Values[v].Kind != tensor.KindTensor {
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
func (p *preparation) quantUses(links ir.Links) map[int][]delegate.QuantUse {
	found := make(map[int][]delegate.QuantUse)
	for c := range p.spec.Chains {
		for i, in := range p.spec.Chains[c].Instructions {
			if in.Kind != pte.KernelCall {
				continue
			}
			o := &links.Operators[in.Index]
			if len(in.Args) != o.Sig.Slots() {
				continue // refused later
			}
			for _, q := range o.Op.Quants {
				u, ok := p.quantUse(in.Args, q)
				if v := in.Args[q.Tensor]; ok && !known(found[v], u) {
					u.By = place(c, i, o.Op.Name())
					found[v] = append(found[v], u)
				}
			}
		}
	}
	return found
}

// quantUse returns how a call with these arguments quantizes one of them. The integers are in the
// argument itself, or in the out if the argument is not of an integer type.
func (p *preparation) quantUse(args []int, q kernels.Quant) (u delegate.QuantUse, ok bool) {
	scale, zero := &p.spec.Values[args[q.Scale]], &p.spec.Values[args[q.ZeroPoint]]
	stored := p.spec.Values[args[q.Tensor]].Tensor
	if stored != nil && !stored.DType.IsInt() {
		stored = p.spec.Values[args[len(args)-1]].Tensor
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
