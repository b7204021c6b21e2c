package xnnpack

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/internal/cases"
)

// TestRows runs products and convolutions of 8-bit activations on both engines, with every number of
// rows in the last tile of the library's kernels. The library computes or rejects each. Each number of rows and each type
// has one of the widths, unless all cases run.
func TestRows(t *testing.T) {
	xnntest.Library(t)
	var list []graphtest.Sample
	for kind, types := range graph.FullyConnectedTypes {
		const widths = 6
		width := kind
		for rows := 1; rows <= 34; rows++ {
			if types.In.Info().Bits == 32 && rows > 9 {
				break
			}
			width++ // with another number of rows, another one is the first
			for _, k := range []int{32, 64, 160} {
				for _, cols := range []int{7, 70} {
					if width++; !cases.Every(widths, width) {
						continue
					}
					m := graphtest.NewMaker(uint64(rows))
					name := fmt.Sprintf("%d rows of %d channels by %d, %v", rows, k, cols, types)
					list = append(list, graphtest.Sample{Name: name, Graph: m.ProductSample(types, rows, k, cols), Loose: graphtest.ToleranceFor(types)})
				}
			}
		}
	}
	for number, types := range graph.ConvolutionTypes {
		const forms = 12
		form := number
		for width := 1; width <= 34; width++ {
			if types.In.Info().Bits == 32 && width > 9 {
				break
			}
			form++
			for _, channels := range []int{64, 72, 160} {
				for _, kind := range []string{"Conv2d", "ConvTranspose2d"} {
					for _, side := range []int{1, 3} {
						if form++; !cases.Every(forms, form) {
							continue
						}
						out := 20 + 50*(width&1)
						m := graphtest.NewMaker(uint64(width))
						name := fmt.Sprintf("%s %dx%d, %d pixels of %d channels to %d, %v", kind, side, side, width, channels, out, types)
						list = append(list, graphtest.Sample{Name: name, Graph: m.PixelSample(kind, types, width, channels, out, side), Loose: graphtest.ToleranceFor(types)})
					}
				}
			}
		}
	}
	compareEngines(t, list)
}

// TestElements runs elementwise nodes on both engines, with every number of elements in the last vector of
// the library's kernels.
func TestElements(t *testing.T) {
	xnntest.Library(t)
	var list []graphtest.Sample
	for _, d := range []graph.Datatype{graph.FP32, graph.FP16, graph.QInt8, graph.QUInt8} {
		loose := map[graph.Datatype]float64{graph.FP32: 1e-5, graph.FP16: 3e-3}[d]
		for n := 1; n <= 70; n++ {
			if testing.Short() && n%8 != 5 || !cases.Every(3, n+int(d)) {
				continue
			}
			add := func(name string, x []int, parameters ...func(*graph.Node)) {
				m := graphtest.NewMaker(uint64(n))
				m.Lo, m.Hi = -2, 2
				var in []int
				for _, columns := range x {
					in = append(in, m.Input(d, 3, columns))
				}
				y := m.Value(d, 3, n)
				switch first := &m.Graph.Values[in[0]].Quant; {
				case name == "Clamp":
					m.Graph.Values[y].Quant = *first
				case d == graph.QInt8 && (name == "Log" || strings.HasSuffix(name, "SquareRoot")): // NaN has no code
					first.ZeroPoint = -128
				case d == graph.QUInt8:
					first.ZeroPoint = 0
				}
				m.Node(name, in, []int{y}, parameters...)
				list = append(list, graphtest.Sample{Name: fmt.Sprintf("%s of %v, %v columns", name, d, x), Graph: m.Done(y), Steps: 1, Loose: loose})
			}
			for i := range graph.UnaryNodes {
				if u := &graph.UnaryNodes[i]; u.Tag != graph.TagConvert {
					add(u.Name, []int{n}, func(x *graph.Node) {
						if graphtest.SetScalar(x, 0.3); u.Name == "Clamp" {
							x.Min, x.Max = -0.5, 1.25
						}
					})
				}
			}
			for i := range graph.BinaryNodes {
				if name := graph.BinaryNodes[i].Name; name != "Div" || d.IsFloat() {
					add(name, []int{n, n})
					add(name, []int{n, 1})
					add(name, []int{1, n})
				}
			}
		}
	}
	compareEngines(t, list)
}

// compareEngines runs graphs on both engines. The library must accept most of them.
func compareEngines(t *testing.T, list []graphtest.Sample) {
	t.Helper()
	rejected := 0
	for _, s := range list {
		data := graphtest.Encode(s.Graph)
		want, g, err := execute(t, data, EngineGo, 0, nil)
		if err != nil {
			t.Fatalf("%s: reference: %v", s.Name, err)
		}
		got, _, err := execute(t, data, EngineNative, 0, nil)
		if errors.Is(err, delegate.ErrUnsupported) {
			rejected++
		} else if err != nil {
			t.Errorf("%s: native: %v", s.Name, err)
		} else if err := s.Differ(got, want, g); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
	t.Logf("%d graphs, not for the library: %d", len(list), rejected)
	if 2*rejected > len(list) {
		t.Error("the library rejects most graphs")
	}
}

// SkipFault skips a test of the native engine if the library computes its graph wrongly on this processor.
func SkipFault(t testing.TB, err error) {
	t.Helper()
	if graphtest.IsFault(err) {
		t.Skip(err)
	}
}
