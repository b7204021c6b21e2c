package delegatetest

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// toy doubles floats. Its payload is the largest number of them. fault is the one rule that it breaks.
type toy struct{ fault string }

func (toy) ID() string             { return "toy" }
func (toy) Probe() delegate.Status { return delegate.Status{Loaded: true} }

func (b toy) Compile(_ context.Context, p *delegate.Payload) (delegate.Image, error) {
	switch {
	case b.fault == "changes the payload":
		p.Data[0]++
	case b.fault == "panics":
		_ = p.Data[3]
	case len(p.Data) != 4 && b.fault == "errors without a reason":
		return nil, errors.New("no")
	}
	if len(p.Data) != 4 {
		return nil, delegate.Errorf("toy", delegate.ErrPayload, "", "%d bytes", len(p.Data))
	}
	n := int64(binary.LittleEndian.Uint32(p.Data))
	img := &toyImage{fault: b.fault, needs: delegate.Needs{Inputs: 1, Scratch: 4 * n}}
	switch b.fault {
	case "too many inputs":
		img.needs.Inputs++
	case "too few inputs":
		img.needs.Inputs--
	case "more inputs than arguments":
		img.needs.Inputs = 3
	case "too little working memory":
		img.needs.Scratch = 0
	case "ignores limits":
		return img, nil
	}
	return img, p.Limits.Check("toy", 0, img.needs.Scratch)
}

type toyImage struct {
	fault string
	needs delegate.Needs
	last  float32 // with a fault: shared by the units
}

func (m *toyImage) Needs() delegate.Needs { return m.needs }
func (m *toyImage) Close() error {
	if m.fault == "fails to close" {
		return errors.New("no")
	}
	return nil
}

func (m *toyImage) Info() delegate.Info {
	n := m.needs
	if m.fault == "describes other needs" {
		n.Scratch++
	}
	return delegate.Info{Needs: n}
}

func (m *toyImage) Unit(delegate.Instance) (delegate.Unit, error) {
	n := m.needs.Scratch
	if m.fault == "too little working memory" {
		n = 1 << 20
	}
	return &toyUnit{toyImage: m, scratch: make([]float32, n/4)}, nil
}

type toyUnit struct {
	*toyImage
	scratch []float32
	first   *tensor.Tensor // output of the first call
	memory  []float32
	calls   int
	stopped bool
	slow    bool
	garbage []byte
}

func (u *toyUnit) Close() error { return nil }

func (u *toyUnit) SetProfiling(on bool) error {
	u.slow = on
	return nil
}

func (u *toyUnit) Profile(dst []delegate.NodeTime) []delegate.NodeTime {
	if u.fault == "negative times" {
		return append(dst, delegate.NodeTime{Duration: -1})
	}
	return append(dst, delegate.NodeTime{Duration: time.Nanosecond})
}

func (u *toyUnit) Execute(ctx context.Context, args []*tensor.Value) error {
	u.calls++
	x, y := args[0].Tensor, args[1].Tensor
	if ctx.Err() != nil {
		u.stopped = true
		return context.Cause(ctx)
	}
	if u.fault != "stale sizes" || u.calls == 1 {
		if err := y.Resize(x.Sizes); err != nil {
			return err
		}
	}
	from, to := tensor.Data[float32](x), tensor.Data[float32](y)
	if u.memory == nil {
		u.first, u.memory = y, to
	}
	if u.fault == "keeps the first output" {
		to = u.memory[:min(len(u.memory), len(to))]
	}
	n := copy(u.scratch, from)
	if u.fault == "leaves an element" {
		n--
	}
	for i := range min(n, len(to)) {
		to[i] = 2 * u.scratch[i]
	}
	u.misbehave(y, from, to)
	return nil
}

// misbehave breaks rules after a run.
func (u *toyUnit) misbehave(y *tensor.Tensor, from, to []float32) {
	switch u.fault {
	case "writes beyond":
		b := y.Storage()
		b[:len(b)+1][len(b)] = 0
	case "writes far beyond":
		b := y.Storage()
		b = b[:cap(b)]
		b[len(b)-1] = 0
	case "writes an input":
		from[0] = to[0]
	case "writes the first output again":
		tensor.Data[float32](u.first)[0]++
	case "state of the unit":
		to[0] += float32(u.calls)
	case "state of the image":
		to[0], u.last = to[0]+u.last, to[0]
	case "stays canceled":
		if u.stopped {
			to[0] = 0
		}
	case "measures by other means":
		if u.slow {
			to[0] = 0
		}
	case "allocates":
		u.garbage = make([]byte, len(from))
	}
}

// toyPayload is a payload of 64 floats.
func toyPayload(d tensor.Dynamism) *delegate.Payload {
	a := &delegate.ArgSpec{DType: tensor.Float32, Sizes: []int{64}, DimOrder: []uint8{0}, Dynamism: d}
	return &delegate.Payload{Data: []byte{64, 0, 0, 0}, Args: []*delegate.ArgSpec{a, a}}
}

// broken returns the names of the rules that a backend breaks.
func broken(fault string, d tensor.Dynamism) (names []string) {
	for _, r := range rules {
		if r.check(toy{fault}, toyPayload(d)) != nil {
			names = append(names, r.name)
		}
	}
	return names
}

// TestSuiteFindsFaults runs a backend with each fault.
func TestSuiteFindsFaults(t *testing.T) {
	for fault, rule := range map[string]string{
		"stale sizes":                   "sizes",
		"keeps the first output":        "arguments",
		"writes the first output again": "arguments",
		"writes an input":               "memory",
		"writes beyond":                 "memory",
		"writes far beyond":             "memory",
		"leaves an element":             "memory",
		"state of the unit":             "state",
		"state of the image":            "units",
		"stays canceled":                "canceled runs",
		"measures by other means":       "profiles",
		"negative times":                "profiles",
		"allocates":                     "allocations",
		"too many inputs":               "needs",
		"too few inputs":                "needs",
		"more inputs than arguments":    "needs",
		"too little working memory":     "needs",
		"describes other needs":         "description",
		"changes the payload":           "description",
		"ignores limits":                "limits",
		"panics":                        "damaged payloads",
		"errors without a reason":       "damaged payloads",
		"fails to close":                "state",
	} {
		if names := broken(fault, tensor.DynamicBound); !slices.Contains(names, rule) {
			t.Errorf("%s: breaks the rules %q, want %q among them", fault, names, rule)
		}
	}
}

func TestSuiteAcceptsBackends(t *testing.T) {
	Run(t, toy{}, toyPayload(tensor.DynamicBound), toyPayload(tensor.Static))
}
