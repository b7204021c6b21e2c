package pte_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/tree"
)

const stateConstant = "../../testdata/repair/state_constant.pte"

// emitter writes the tensors of a program like an exporter that looks initial contents of named
// states up among the constants.
type emitter struct {
	constants, parts [][]byte
	want             [][]byte // contents of the states, in order
	faults           int
}

func (e *emitter) number(data []byte, state bool) int {
	at := slices.IndexFunc(e.constants, func(c []byte) bool { return bytes.Equal(c, data) })
	list := &e.constants
	if state {
		e.want = append(e.want, data)
		list = &e.parts
	}
	if at >= 0 {
		if state {
			e.faults++
		}
		return at + 1
	}
	*list = append(*list, data)
	return len(*list)
}

func (e *emitter) tensor(data []byte, state bool) *tree.Node {
	t := tree.New("Tensor").With("scalar_type", tree.Scalar(tensor.Uint8)).With("sizes", []tree.Scalar{tree.Scalar(len(data))}).
		With("dim_order", []byte{0}).With("data_buffer_idx", tree.Scalar(e.number(data, state)))
	if state {
		t.With("allocation_info", tree.New("AllocationDetails").With("memory_id", tree.Scalar(1)))
		t.With("extra_tensor_info", tree.New("ExtraTensorInfo").With("fully_qualified_name", "s"))
	}
	tag := slices.Index(tree.Unions["KernelTypes"], "Tensor")
	return tree.New("EValue").With("val_type", tree.Scalar(tag)).With("val", t)
}

// segment adds a list of byte ranges, laid end to end behind a placeholder.
func segment(f *tree.File, list [][]byte) *tree.Node {
	offsets, data := []tree.Scalar{0}, []byte(nil)
	for _, d := range list {
		offsets, data = append(offsets, tree.Scalar(len(data))), append(data, d...)
	}
	f.Tail = tree.Pad(f.Tail, tree.SegmentAlign)
	segments, _ := f.Root.Fields["segments"].([]*tree.Node)
	f.Root.With("segments", append(segments, tree.New("DataSegment").With("offset", tree.Scalar(len(f.Tail))).With("size",
		tree.Scalar(len(data)))))
	f.Tail = append(f.Tail, data...)
	return tree.New("SubsegmentOffsets").With("segment_index", tree.Scalar(len(segments))).With("offsets", offsets)
}

// randomStates returns a program of two methods with constants and named states of few contents.
func randomStates(t *testing.T, r *rand.Rand) ([]byte, *emitter) {
	t.Helper()
	file, err := os.ReadFile(stateConstant)
	if err != nil {
		t.Fatal(err)
	}
	f, err := tree.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	e := &emitter{}
	f.Root.With("segments", []*tree.Node(nil))
	f.Tail = nil
	var plans []*tree.Node
	for _, name := range []string{"forward", "other"} {
		var values []*tree.Node
		for range r.IntN(6) {
			values = append(values, e.tensor(bytes.Repeat([]byte{byte(r.IntN(3))}, 1+r.IntN(3)), r.IntN(2) == 0))
		}
		plans = append(plans, tree.New("ExecutionPlan").With("name", name).With("values", values).With("inputs", []tree.Scalar{}).
			With("outputs", []tree.Scalar{}).With("chains", []*tree.Node{}).With("operators", []*tree.Node{}).With("delegates", []*tree.Node{}).
			With("non_const_buffer_sizes", []tree.Scalar{0, 64}))
	}
	f.Root.With("execution_plan", plans).With("constant_segment", segment(f, e.constants))
	f.Root.With("mutable_data_segments", []*tree.Node{segment(f, e.parts)})
	return f.Bytes(), e
}

// TestInitialStates checks that the contents of states are those of the model, or unknown.
func TestInitialStates(t *testing.T) {
	sound, repaired, unknown := 0, 0, 0
	for seed := range uint64(3000) {
		data, e := randomStates(t, rand.New(rand.NewPCG(seed, 31)))
		p, err := pte.Parse(data, pte.Limits{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		at := 0
		for i := range p.Methods {
			m := &p.Methods[i]
			for v := range m.Values {
				s := m.Values[v].Tensor
				if s.Storage != pte.PlannedInit {
					continue
				}
				k := slices.IndexFunc(m.Initial, func(f pte.InitialFault) bool { return f.Value == v })
				switch {
				case k >= 0 && m.Initial[k].Err != nil:
					unknown++
					if !errors.Is(m.Initial[k].Err, pte.ErrFormat) || e.faults == 0 {
						t.Fatalf("seed %d, method %d, value %d: %v", seed, i, v, m.Initial[k].Err)
					}
				case !bytes.Equal(s.Data, e.want[at]):
					t.Fatalf("seed %d, method %d, value %d: got %v, want %v of %v; constants %v, parts %v", seed, i, v, s.Data, e.want[at], e.want,
						e.constants, e.parts)
				case k >= 0:
					repaired++
				default:
					sound++
				}
				at++
			}
		}
	}
	t.Logf("%d states sound, %d repaired, %d unknown", sound, repaired, unknown)
	if sound < 1000 || repaired < 500 || unknown > repaired {
		t.Errorf("%d states sound, %d repaired, %d unknown", sound, repaired, unknown)
	}
}
