package layers

import (
	"context"
	"math"
	"strings"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Near is a value of a quantized program beside the nearest value of one of floats.
type Near struct {
	Place
	Output int           `json:"output"`
	Type   string        `json:"type"`
	To     Place         `json:"nearest"`
	DB     output.Number `json:"snr_db"` // the nearest value's ratio to the difference
}

// Scales are those of 8-bit values that nodes of delegates write.
type Scales map[Place]scale

type scale struct{ step, zero float64 }

// Add adds the scales of a method, and reports whether any node of it has scales.
func (s Scales) Add(m *etrun.Method) (quantized bool) {
	for d, info := range m.Delegates() {
		for k, n := range info.Nodes {
			found := make(map[string]float64)
			for _, a := range n.Attributes {
				quantized = quantized || strings.Contains(a.Name, "scale")
				switch x := a.Value.(type) {
				case float32:
					found[a.Name] = float64(x)
				case int:
					found[a.Name] = float64(x)
				case int32:
					found[a.Name] = float64(x)
				}
			}
			if step := found["output scale"]; step > 0 {
				s[Place{Method: m.Name(), Delegate: d, Node: k}] = scale{step, found["output zero point"]}
			}
		}
	}
	return quantized
}

// candidate returns a value as floats, nil if it has few elements or is neither of floats nor of 8 bits with a scale.
func (s Scales) candidate(w *Written) *candidate {
	x := *w
	if at, ok := s[Place{Method: w.Method, Delegate: w.Delegate, Node: w.Node}]; ok && w.Value.Kind == tensor.KindTensor && w.Value.Tensor.DType == tensor.Int8 {
		t := tensor.Make(tensor.Float32, w.Value.Tensor.Sizes, w.Value.Tensor.DimOrder, tensor.Static)
		t.Bind(tensor.AlignedBytes(t.NBytes()))
		for i, q := range tensor.Data[int8](w.Value.Tensor)[:t.Numel()] {
			tensor.Data[float32](t)[i] = float32((float64(q) - at.zero) * at.step)
		}
		v := tensor.TensorValue(t)
		x.Value = &v
	}
	if c := newCandidate(&x); c != nil && !c.weak {
		return c
	}
	return nil
}

const (
	farthest  = 3       // dB: less is no counterpart
	compared  = 1 << 12 // elements by which the nearest value is found
	maxNearby = 1 << 24 // elements that are compared in all to find one
)

// Nearest finds for each value of B the nearest value of A, in the order of B: of those that have as many elements, and that depend on
// the nearest values of what it is computed from.
func Nearest(ctx context.Context, a, b *Recorder, scalesA, scalesB Scales) (list []Near) {
	s := &search{a: a.all, b: b.all, matches: make(map[int][]int), nearest: make([][]int, len(b.all)), bySize: make(map[int][]indexed)}
	for i := range s.a {
		if c := scalesA.candidate(&s.a[i]); c != nil {
			s.bySize[len(c.numbers)] = append(s.bySize[len(c.numbers)], indexed{c, i})
		}
	}
	if len(s.a) <= maxFlow {
		s.before = dependences(s.a)
	}
	for i := range s.b {
		if ctx.Err() != nil {
			return list
		}
		w := &s.b[i]
		s.computedFrom(i)
		c := scalesB.candidate(w)
		if c == nil {
			continue
		}
		if near := s.nearestOf(i, c); near != nil && w.Round != ofInput {
			ratio := near.ratio(c, len(c.numbers))
			list = append(list, Near{w.Place, w.Output, w.TypeName(), near.of.Place, output.Number(ratio)})
		}
	}
	return list
}

// nearestOf returns the value of A that is the nearest to value i of B, nil if none is near.
func (s *search) nearestOf(i int, c *candidate) *candidate {
	var best *candidate
	found, most, left := 0, float64(farthest), maxNearby
	for _, want := range s.bySize[len(c.numbers)] {
		if left < 0 || !s.follows(want.at, s.nearest[i]) {
			continue
		}
		n := min(len(c.numbers), compared)
		left -= n
		if ratio := want.ratio(c, n); ratio > most {
			best, found, most = want.candidate, want.at, ratio
		}
	}
	if best != nil {
		s.matches[i] = []int{found}
	}
	return best
}

// ratio returns the ratio of want to its difference from c in dB, by n elements in equal distances, in the arrangement in which it is highest.
func (want *candidate) ratio(c *candidate, n int) float64 {
	best := math.Inf(-1)
	for _, x := range c.arrangements(want) {
		signal, noise := 0.0, 0.0
		for k := range n {
			at := k * len(x[0]) / n
			got, want := float64(x[0][at]), float64(x[1][at])
			signal, noise = signal+want*want, noise+(got-want)*(got-want)
		}
		if ratio := 10 * math.Log10(signal/noise); ratio > best { // of equal elements it is infinite
			best = ratio
		}
	}
	return best
}
