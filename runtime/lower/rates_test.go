package lower

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"go/format"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/delegatetest"
	regions "github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/internal/cases"
	"github.com/etrun-go/etrun/internal/ratetest"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable"
	"github.com/etrun-go/etrun/kernels/quantized"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var (
	measureFlag = flag.Bool("measure-rates", false, "measure the rates of this processor's instruction set, see make rates")
	fitFlag     = flag.Bool("fit-rates", false, "write the rates of all instruction sets from their measurements")
)

const samplesPerKind = 50

var allOps = kernels.NewSet(portable.Ops(), quantized.Ops())

// sampleGraph returns the graph of a sample, and the arguments of its unit.
func sampleGraph(t *testing.T, kind string, seed uint64) (*regions.Graph, []*tensor.Value) {
	name, args := sampleCall(kind, seed)
	op, sig, _, err := allOps.Lookup(name)
	if err != nil || op == nil {
		t.Fatal(name, err)
	}
	return oneCall(op, sig, args)
}

// switched is how many units of a sample run in turns: programs run other calls between two runs of one. With four of them
// the estimates of models are nearest to their times.
const switched = 4

// measureSample returns the time of a sample in nanoseconds.
func measureSample(t *testing.T, kind string, seed uint64) float64 {
	var units [switched]delegate.Unit
	var args [switched][]*tensor.Value
	for i := range units {
		g, values := sampleGraph(t, kind, seed)
		img, err := delegatetest.Oracle{}.CompileGraph(t.Context(), g)
		if err != nil {
			t.Fatalf("%s, seed %d: %v", kind, seed, err)
		}
		defer img.Close()
		if units[i], err = img.Unit(delegate.Instance{}); err != nil {
			t.Fatal(err)
		}
		defer units[i].Close()
		args[i] = values
		if err := units[i].Execute(t.Context(), values); err != nil {
			t.Fatalf("%s, seed %d: %v", kind, seed, err)
		}
	}
	at := 0
	ns, err := ratetest.Measure(func(n int) {
		for range n {
			if at++; at == switched {
				at = 0
			}
			if err := units[at].Execute(context.Background(), args[at]); err != nil {
				t.Fatalf("%s, seed %d: %v", kind, seed, err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return ns[0]
}

func ratesFile(set string) string { return filepath.Join("testdata", "rates", set+".tsv") }

// TestMeasureRates measures a sample of each kind, or with -measure-rates all, and then writes the times to the file of the
// instruction set.
func TestMeasureRates(t *testing.T) {
	if testing.Short() {
		t.Skip("measures times")
	}
	if *measureFlag {
		measureRates(t)
		return
	}
	for _, k := range sampleKinds {
		if ns := measureSample(t, k.name, 0); ns <= 0 {
			t.Errorf("%s: no time", k.name)
		}
	}
}

// measureRates measures the samples and writes them to the file of the instruction set.
func measureRates(t *testing.T) {
	var kinds []string
	for _, k := range sampleKinds {
		kinds = append(kinds, k.name)
	}
	path := ratesFile(instructionSet())
	table := ratetest.Update(path, kinds, nil, func(table *ratetest.Table, kind string) {
		for seed := range uint64(samplesPerKind) {
			table.Add(kind, seed, measureSample(t, kind, seed))
		}
	})
	if err := table.Write(path); err != nil {
		t.Fatal(err)
	}
}

// TestRates checks that the rates of each instruction set are those that fit its measurements best.
func TestRates(t *testing.T) {
	if testing.Short() {
		t.Skip("fits tables, which takes minutes under the race detector")
	}
	for _, set := range slices.Sorted(maps.Keys(ratesOf)) {
		if !*fitFlag && !cases.All() && set != instructionSet() { // each takes seconds, and only make rates writes them
			continue
		}
		want := ratesOf[set]
		table, err := ratetest.Read(ratesFile(set))
		if err != nil {
			t.Error(err)
			continue
		}
		samples := samplesOf(t, table)
		if *fitFlag {
			writeRates(t, set, table.Head, samples.Fit())
			continue
		}
		var without []bool
		for _, v := range flat(want) {
			without = append(without, v == 0)
		}
		for j, got := range samples.FitWithout(without) {
			if w := flat(want)[j]; math.Abs(got-w) > 0.1*max(got, w) {
				t.Errorf("%s, %s, %s: rate %.4g, the measurements fit %.4g; run make rates", set, classNames[j/int(terms)], termNames[j%int(terms)], w, got)
			}
		}
		logErrors(t, set, table, samples, flat(want))
	}
}

// logErrors logs the mean error of the estimates by kind.
func logErrors(t *testing.T, set string, table *ratetest.Table, s *ratetest.Samples, rates []float64) {
	sum, count := map[string]float64{}, map[string]float64{}
	for i, row := range table.Rows {
		sum[row[0]] += math.Abs(math.Log(ratetest.Time(s.Amounts[i], rates) / s.Times[i]))
		count[row[0]]++
	}
	var list []string
	for kind := range sum {
		list = append(list, fmt.Sprintf("%s %.2f", kind, sum[kind]/count[kind]))
	}
	slices.Sort(list)
	t.Logf("%s: mean errors: %s", set, strings.Join(list, ", "))
}

func samplesOf(t *testing.T, table *ratetest.Table) *ratetest.Samples {
	s := &ratetest.Samples{Terms: int(terms)}
	for _, row := range table.Rows {
		var seed uint64
		var ns float64
		if _, err := fmt.Sscan(row[1]+" "+row[2], &seed, &ns); err != nil {
			t.Fatalf("%q: %v", row, err)
		}
		g, _ := sampleGraph(t, row[0], seed)
		s.Add(flat(loadOf(g, 1)), ns)
	}
	return s
}

func flat(r *rateTable) (list []float64) {
	for c := range r {
		list = append(list, r[c][:]...)
	}
	return list
}

// writeRates writes the Go file of an instruction set.
func writeRates(t *testing.T, set, head string, rates []float64) {
	var b bytes.Buffer
	name := rateVariables[set]
	fmt.Fprintf(&b, "// Code generated by make rates. DO NOT EDIT.\n\npackage lower\n\n// %s are nanoseconds on %s.\nvar %s = rateTable{\n", name, head, name)
	count := 0
	for c, class := range classNames {
		var row []string
		for k, v := range rates[c*int(terms):][:terms] {
			if v > 0 {
				row = append(row, fmt.Sprintf("%s: %.3g", termNames[k], v))
			}
		}
		if count += len(row); len(row) > 0 {
			fmt.Fprintf(&b, "%s: {%s},\n", class, strings.Join(row, ", "))
		}
	}
	b.WriteString("}\n")
	t.Logf("%s: %d rates", set, count)
	text, err := format.Source(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("rates_"+strings.ToLower(strings.TrimPrefix(name, "rates"))+".go", text, 0o666); err != nil {
		t.Fatal(err)
	}
}

// Names in files.
var (
	rateVariables = map[string]string{"avx512": "ratesAVX512", "avx2": "ratesAVX2", "neon": "ratesNEON", "go": "ratesNone"}
	classNames    = [classes]string{"classCall", "classHalf", "classPoint", "classWindow", "classStrided", "classPlanes", "classPlanesStrided", "classPixels", "classTransposed",
		"classLinear", "classMatrix", "classBatch", "classMaximum", "classAverage", "classMean", "classSoftmax", "classResize", "classBinary", "classPair", "classJoin",
		"classMoveRows", "classMoveElements", "classCopy", "classQuantize", "classDequantize", "classLayerNorm", "classBatchNorm", "classGelu", "classSigmoid",
		"classTanh", "classExact", "classArith", "classPointwise", "classSum", "classLoose"}
	termNames = [terms]string{"termStart", "termRow", "termPlane", "termTap", "termLine", "termWork", "termElement", "termWeight"}
)

// TestEstimateAnyDeclarations estimates calls whose tensors have other ranks and sizes, whose numbers are
// others, and which have fewer arguments.
func TestEstimateAnyDeclarations(t *testing.T) {
	for _, k := range sampleKinds {
		g, _ := sampleGraph(t, k.name, 1)
		values, args := g.Values, g.Calls[0].Args
		for seed := range uint64(500) {
			r := rand.New(rand.NewPCG(seed, 3))
			g.Values, g.Calls[0].Args = slices.Clone(values), args
			for range 1 + r.IntN(3) {
				changeDeclaration(&g.Values[r.IntN(len(values))], r)
			}
			if r.IntN(4) == 0 {
				g.Calls[0].Args = args[:r.IntN(len(args))]
			}
			if d := Estimate(g, r.Float64()); d < 0 {
				t.Fatalf("%s, seed %d: %v", k.name, seed, d)
			}
		}
	}
}

func changeDeclaration(v *regions.GraphValue, r *rand.Rand) {
	edges := []int64{-1, 0, 1, 2, 3, 17, math.MaxInt64, math.MinInt64}
	v.Int, v.Bool, v.Dynamism = edges[r.IntN(len(edges))], r.IntN(2) == 0, tensor.Dynamism(r.IntN(3))
	if v.Kind != tensor.KindTensor {
		return
	}
	v.Sizes = make([]int, r.IntN(6))
	for i := range v.Sizes {
		v.Sizes[i] = r.IntN(20)
	}
}

// TestPairs checks that operands of which leading sizes of 1 are missing are not taken for smaller ones.
func TestPairs(t *testing.T) {
	for _, c := range []struct {
		x, z, y dims
		class   class
	}{
		{dims{2, 16}, dims{2, 16}, dims{2, 16}, classPair}, {dims{1, 16}, dims{16}, dims{1, 16}, classPair},
		{dims{16}, dims{1, 1, 16}, dims{1, 1, 16}, classPair}, {dims{2, 16}, dims{16}, dims{2, 16}, classBinary},
		{dims{2, 16}, dims{1}, dims{2, 16}, classBinary}, {dims{4, 1}, dims{1, 4}, dims{4, 4}, classBinary},
	} {
		op, sig, _, err := allOps.Lookup("aten::mul.out")
		if err != nil {
			t.Fatal(err)
		}
		g, _ := oneCall(op, sig, arguments{c.x, c.z, c.y})
		if got, _ := rowOf(op)(&operation{g: g, c: &g.Calls[0], share: 1}); got != c.class {
			t.Errorf("%v and %v: class %s, want %s", c.x, c.z, classNames[got], classNames[c.class])
		}
	}
}

// TestEveryClassHasRates checks that no class is without a time: its operators would seem to cost nothing.
func TestEveryClassHasRates(t *testing.T) {
	for set, rates := range ratesOf {
		for c, row := range rates {
			if row == (amounts{}) {
				t.Errorf("%s: %s has no rates", set, classNames[c])
			}
		}
	}
}
