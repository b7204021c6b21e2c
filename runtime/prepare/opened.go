package prepare

import (
	"context"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// compiled is a method with the images of all delegates, of the file and of regions.
type compiled struct {
	*lowered
	images   []delegate.Image
	needs    []delegate.Needs
	backends []string // IDs
}

// compile compiles the opened payloads, except those that were merged into regions.
func (l *load) compile(ctx context.Context, low *lowered) (*compiled, error) {
	merged := l.merged(low.base.ir, low.ir)
	if err := l.measure(ctx, merged, low.needs); err != nil {
		return nil, err
	}
	for d, o := range l.files.opened {
		if o == nil || merged[d] {
			continue
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		img, err := l.image(d, o.payload, l.limits(low.needs...), func() (delegate.Image, error) { return o.Compile(ctx) })
		if err != nil {
			return nil, l.report.Compiled(d, l.Method.Delegates[d].ID, 0, err)
		}
		l.files.opened[d] = nil
		if err := l.setImage(d, img); err != nil {
			return nil, err
		}
	}
	c := &compiled{lowered: low, images: slices.Concat(l.files.images, low.images), needs: slices.Concat(l.files.needs, low.needs)}
	for i := range l.Method.Delegates {
		c.backends = append(c.backends, l.Method.Delegates[i].ID)
	}
	c.backends = append(c.backends, low.backends...)
	return c, nil
}

// merged reports which delegates of the file the lowered method does not call, while the method before lowering does.
func (l *load) merged(before, after *ir.Method) []bool {
	merged := make([]bool, len(l.Method.Delegates))
	for k, method := range [...]*ir.Method{before, after} {
		for i := range method.Steps {
			if s := &method.Steps[i]; s.Kind == ir.DelegateCall && s.Delegate < len(merged) {
				merged[s.Delegate] = k == 0
			}
		}
	}
	return merged
}

// mergedImage is the placeholder of a payload that was merged into a region and is no longer called.
type mergedImage struct{ inputs int }

func (m mergedImage) Needs() delegate.Needs { return delegate.Needs{Inputs: m.inputs} }

func (m mergedImage) Info() delegate.Info {
	return delegate.Info{Needs: m.Needs(), Facts: [][2]string{{"merged", "into a region"}}}
}

func (mergedImage) Unit(delegate.Instance) (delegate.Unit, error) { return mergedUnit{}, nil }

func (mergedImage) Close() error { return nil }

type mergedUnit struct{}

func (mergedUnit) Execute(context.Context, []*tensor.Value) error {
	return fmt.Errorf("%w: the payload was merged into a region", delegate.ErrArgument)
}

func (mergedUnit) Close() error { return nil }
