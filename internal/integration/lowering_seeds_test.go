package integration

import (
	"archive/zip"
	"context"
	"io"
	"math/rand/v2"
	"path"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/delegatetest"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// seedRegions is the number of regions of programs of testdata/lowering if everything that XNNPACK
// accepts is taken; 1 if not listed. Fewer or more regions mean that a dataflow is split or missed.
var seedRegions = map[string]int{
	"seed_c_scalar/sdpa_portable.pte": 2, "seed_e_passthrough/aliases_portable.pte": 2, "seed_e_passthrough/views_portable.pte": 2,
	"topo_one_pixel/portable.pte": 2, "topo_permute_conv/portable.pte": 2, "topo_view_of_input/portable.pte": 2,
	"seed_e_passthrough/const_only_portable.pte": 0, "seed_e_passthrough/identity_portable.pte": 0, "seed_e_passthrough/swap_portable.pte": 0,
}

// seedTolerance is for float32, absolute or relative to the elements.
const seedTolerance = 2e-5

// TestSeeds lowers programs whose dataflow exporters have got wrong: on operators, where results
// must be identical, and on XNNPACK.
func TestSeeds(t *testing.T) {
	archive, err := zip.OpenReader("../../testdata/lowering/seeds.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	for _, f := range archive.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		want, ok := seedRegions[f.Name]
		if !ok {
			want = 1
		}
		for name, by := range map[string]delegate.Backend{
			"operators": delegatetest.Oracle{Poison: 0xAA}, "XNNPACK in Go": xnnpack.Backend{Engine: xnnpack.EngineGo}, "XNNPACK": xnnpack.Backend{},
		} {
			t.Run(path.Join(f.Name, name), func(t *testing.T) { checkSeed(t, data, by, want, seedScales[f.Name]) })
		}
	}
}

// seedScales are programs in which a factor is folded into the weights of a product, which rounds once instead of twice.
var seedScales = map[string]bool{"topo_cl_broadcast/portable.pte": true, "topo_cl_broadcast_nhwc/portable.pte": true,
	"topo_scalar_linears2/portable.pte": true, "seed_b_dynq/mul_fp32_portable.pte": true}

// checkSeed runs a program with and without regions, and compares the outputs: those of operators alone are the same, unless factors are
// folded.
func checkSeed(t *testing.T, data []byte, by delegate.Backend, regions int, scales bool) {
	p, err := etrun.Parse(data, etrun.WithLowering(etrun.LowerVerify), etrun.WithDelegates(by), etrun.WithThreads(1))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m, err := p.Load(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	_, exact := by.(delegatetest.Oracle)
	if n := m.Report().Lowered.Accepted(); !exact && n != regions {
		t.Errorf("%d regions, want %d", n, regions)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for run := range 3 {
		for i, in := range m.Meta().Inputs {
			x := tensor.New(in.DType, in.Sizes...)
			for k := range x.Numel() {
				if in.DType == tensor.Float32 {
					tensor.Data[float32](x)[k] = 2*r.Float32() - 1
				}
			}
			if err := m.SetInput(i, x); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.Execute(context.Background()); err != nil {
			t.Fatal(err)
		}
		for _, d := range m.Report().Distances {
			if d.Absolute != 0 && (exact && !scales || min(d.Absolute, d.Relative) > seedTolerance) {
				t.Errorf("run %d: output %d differs by %g, %g of what it is (index %d)", run, d.Output, d.Absolute, d.Relative, d.Index)
			}
		}
	}
}
