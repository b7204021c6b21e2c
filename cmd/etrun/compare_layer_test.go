package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/cmd/etrun/internal/npy"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

func TestCompareLayers(t *testing.T) {
	digits := filepath.Dir(digits(t, "portable.pte"))
	d := func(args string) string { return strings.ReplaceAll(args, "D/", digits+"/") }
	play(t, []script{
		{name: "the same", args: d("compare D/portable.pte D/portable.pte --layer"), stdout: []string{"layer: 18 of 18 values compared, 18 equal, all within the tolerance\n"}},
		{name: "plans", args: d("compare D/portable.pte --vs --plan=naive --layer --atol 0 --rtol 0"), stdout: []string{"layer: 18 of 18 values compared, 18 equal"}},
		{name: "lowered", args: d("compare D/portable.pte --vs --lower=rewrite --layer --atol 1e-4"), stdout: []string{"values compared", "first not equal: forward, chain 0, instruction 0 (aten::convolution.out), output 0 float32 1x16x8x8\n"}},
		{name: "engines", args: d("compare D/xnnpack.pte --vs --xnnpack=go --layer --atol 1e-4"), stdout: []string{"layer: 9 of 9 values compared"}},
		{name: "loops", args: "compare PTE/map_loop.pte --vs --plan=naive --layer", stdout: []string{"all within the tolerance"}},
		{name: "branches", args: "compare PTE/two_conds.pte --vs --plan=naive --layer -i zeros -i ones -i rand", stdout: []string{"all within the tolerance"}},
		{name: "an NPU", args: "compare PTE/../ethosu/programs/digits.pte --vs --plan=naive --layer", stdout: []string{"layer: 8 of 8 values compared, 8 equal"}},
		{name: "other programs", args: d("compare D/portable.pte D/xnnpack.pte --layer --atol 1e-3"), stdout: []string{"layer: 9 of 9 values compared, ", "all within the tolerance\n  by value: 9 of 9 values also occur in the other program\n"},
			stderr: []string{"the programs have different instructions: the first computes 17 values, the second 1 value, and 8 nodes in 1 delegate; 0 values have the same operator and type in both"}},
		{name: "nothing kept", args: "compare HERE/add.pte --against grids.npz --layer", code: 2, stderr: []string{"no array has the name of an instruction"}},
		{name: "two programs to standard output", args: d("compare D/portable.pte D/portable.pte --dump-intermediates -"), code: 2},
		{name: "values without an ETDump", args: d("run D/portable.pte --etdump-values x.bin"), code: 2, stderr: []string{"--etdump-values requires --etdump"}, absent: []string{"x.bin"}},
		{name: "values of an ETDump", args: d("profile D/xnnpack.pte --repeat 2 --etdump x.etdp --etdump-values x.bin"), stdout: []string{"forward"}},
		{name: "values of an ETDump of a run", args: d("run D/portable.pte --repeat 2 --etdump x.etdp --etdump-values x.bin"), stdout: []string{"forward"}},
		{name: "several runs", args: d("run D/portable.pte --repeat 3 --dump-intermediates x"), code: 2, absent: []string{"x"}},
	})
}

// TestDumpIntermediates compares a run with dumped values, from a folder and from an archive,
// and finds a changed array.
func TestDumpIntermediates(t *testing.T) {
	for _, model := range []string{digits(t, "portable.pte"), digits(t, "xnnpack.pte")} {
		dir := t.TempDir()
		for _, place := range []string{filepath.Join(dir, "values"), filepath.Join(dir, "values.npz")} {
			script{args: "run " + model + " --seed 4 --next --dump-intermediates " + place}.run(t)
			script{args: "compare " + model + " --seed 4 --next --layer --atol 0 --rtol 0 --against " + place, stdout: []string{" equal, all within the tolerance\n"}}.run(t)
		}
		names, err := filepath.Glob(filepath.Join(dir, "values", "*.npy"))
		if err != nil || len(names) < 18 || !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(filepath.Base(n), "call1_0_0000_") }) {
			t.Fatalf("%q, %v", names, err)
		}
		place := names[slices.IndexFunc(names, func(n string) bool { return strings.HasPrefix(filepath.Base(n), "0_00") && strings.Contains(n, "onv") })]
		file, err := os.ReadFile(place)
		if err != nil {
			t.Fatal(err)
		}
		file[len(file)-1] ^= 0x40
		write(t, place, file)
		var out, notes bytes.Buffer
		code := run([]string{"compare", model, "--seed", "4", "--next", "--layer", "--json", "--against", filepath.Join(dir, "values")}, strings.NewReader(""), &out, &notes)
		var r comparedReport
		if err := json.Unmarshal(out.Bytes(), &r); err != nil || code != 6 || r.Layer == nil || r.Layer.First == nil {
			t.Fatalf("exit code %d, %v, %s%s", code, err, out.String(), notes.String())
		}
	}
}

// nanProgram takes the logarithm of the output of a relu, which contains zeros.
func nanProgram(t *testing.T) string {
	return changedProgram(t, "../digits/portable.pte", func(p *pte.Program) {
		m := &p.Methods[0]
		relu := slices.IndexFunc(m.Operators, func(o pte.Operator) bool { return o.Name == "aten::relu" })
		m.Operators = append(m.Operators, pte.Operator{Name: "aten::log", Overload: "out"})
		seen := 0
		for i := range m.Chains[0].Instructions {
			if in := &m.Chains[0].Instructions[i]; in.Kind == pte.KernelCall && in.Index == relu {
				if seen++; seen == 2 {
					in.Index = len(m.Operators) - 1
				}
			}
		}
	})
}

func TestTrapNaN(t *testing.T) {
	path := nanProgram(t)
	for _, line := range []string{"run PATH --trap-nan", "compare PATH PATH --trap-nan", "run PATH --trap-nan --lower rewrite", "PATH --trap-nan"} {
		var out, notes bytes.Buffer
		code := run(strings.Fields(strings.ReplaceAll(line, "PATH", path)), strings.NewReader(""), &out, &notes)
		text := notes.String()
		if code != 1 || !strings.Contains(text, "chain 0, instruction 6 (aten::log.out): output 0 float32 1x32x8x8 has ") ||
			!strings.Contains(text, "its inputs have none:\n  value ") || !strings.Contains(text, "float32 1x32x8x8: min -") || strings.Contains(out.String(), "output 0") {
			t.Errorf("%s: exit code %d, %s%s", line, code, out.String(), text)
		}
	}
	script{args: "run " + digits(t, "portable.pte") + " --trap-nan", stdout: []string{"output 0"}}.run(t)
}

// NaN in the inputs of a program does not trigger the trap.
func TestTrapLetsInputsThrough(t *testing.T) {
	x := tensor.New(tensor.Float32, 1, 1, 8, 8)
	tensor.View[float32](x.Data)[7] = float32(math.NaN())
	var b bytes.Buffer
	if err := npy.Write(&b, x); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "nan.npy")
	write(t, file, b.Bytes())
	for _, model := range []string{"portable.pte", "xnnpack.pte"} {
		var out, notes bytes.Buffer
		if code := run([]string{"run", digits(t, model), "-i", file, "--trap-nan"}, strings.NewReader(""), &out, &notes); code != 0 {
			t.Errorf("%s: exit code %d, %s", model, code, notes.String())
		}
	}
}

// TestCompareTracesNodes changes the weights of a node in a payload; the node must be the first
// whose result is not a value of the portable program.
func TestCompareTracesNodes(t *testing.T) {
	for size, want := range map[int]string{4 * 32 * 32 * 9: "node 4 (Conv2d)", 4 * 320: "node 7 (FullyConnected)", 4 * 32 * 16: "node 2 (Conv2d)"} {
		changed := changedProgram(t, "../digits/xnnpack.pte", func(p *pte.Program) {
			for key, data := range p.Named {
				if len(data) == size {
					numbers := append([]float32{}, tensor.View[float32](data)...)
					for i := range numbers {
						numbers[i] *= 1.5
					}
					p.Named[key] = tensor.BytesOf(numbers)
				}
			}
		})
		var out, notes bytes.Buffer
		code := run([]string{"compare", digits(t, "portable.pte"), changed, "--layer", "--atol", "1e-4"}, strings.NewReader(""), &out, &notes)
		if text := out.String(); code != 6 || !strings.Contains(text, "first one that does not: forward, chain 0, instruction 0 (delegate 0, XnnpackBackend), "+want+"\n") {
			t.Errorf("exit code %d, want %s in %s%s", code, want, text, notes.String())
		}
	}
}
