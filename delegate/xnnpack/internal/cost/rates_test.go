package cost

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/internal/cases"
	"github.com/etrun-go/etrun/internal/ratetest"
)

var fitFlag = flag.Bool("fit-rates", false, "write the rates of all instruction sets from their measurements")

// sampleTime is the measured time of a graph of [graphtest.RateGraph], in nanoseconds, by engine. It is 0 if an engine does
// not run it.
type sampleTime struct {
	kind string
	seed uint64
	ns   [2]float64
}

// TestRates checks that the rates of each instruction set are those that fit its measurements best. "make rates" measures
// again.
func TestRates(t *testing.T) {
	if testing.Short() {
		t.Skip("fits ten tables, which takes minutes under the race detector")
	}
	for _, set := range slices.Sorted(maps.Keys(RatesOf)) {
		if !*fitFlag && !cases.All() && set != GoSet() { // each takes seconds, and only make rates writes them
			continue
		}
		want := RatesOf[set]
		head, list := readSamples(t, filepath.Join("testdata", "rates", set+".tsv"))
		if list == nil {
			if set != setAMX { // whose rates are those of another set, see rates_amx.go
				t.Errorf("%s: no measurements", set)
			}
			continue
		}
		var samples [2]*ratetest.Samples
		for engine := range samples {
			samples[engine] = samplesOf(t, &want[engine], engine, list)
		}
		addPrograms(&samples, readPrograms(t, set))
		var fitted [2]RateTable
		for engine, s := range samples {
			if *fitFlag {
				fitted[engine] = tableOf(s.Fit())
				continue
			}
			fitted[engine] = tableOf(s.FitWithout(absent(&want[engine].Rates)))
			compareRates(t, set, engine, &want[engine].Rates, &fitted[engine])
		}
		if *fitFlag {
			writeRates(t, set, head, want, &fitted)
		}
	}
}

// compareRates reports rates that differ from fitted ones by more than a tenth.
func compareRates(t *testing.T, set string, engine int, want, got *RateTable) {
	t.Helper()
	for c := range want {
		for k, w := range want[c] {
			if g := got[c][k]; math.Abs(g-w) > 0.1*max(g, w) {
				t.Errorf("%s, engine %d, %s, %s: rate %.4g, the measurements fit %.4g; run make rates", set, engine, classNames[c], termNames[k], w, g)
			}
		}
	}
}

// readSamples returns the first line of a file of measurements, and the measurements. It returns none if there is no file.
func readSamples(t *testing.T, path string) (head string, list []sampleTime) {
	table, err := ratetest.Read(path)
	if os.IsNotExist(err) {
		return "", nil
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range table.Rows {
		var s sampleTime
		if _, err := fmt.Sscan(strings.Join(row, " "), &s.kind, &s.seed, &s.ns[ByLibrary], &s.ns[ByGo]); err != nil {
			t.Fatalf("%s: %q: %v", path, row, err)
		}
		list = append(list, s)
	}
	return table.Head, list
}

// flat returns the amounts of a load in one list, and tableOf the table of such a list.
func flat(l *Load) (list []float64) {
	for c := range l {
		list = append(list, l[c][:]...)
	}
	return list
}

func tableOf(list []float64) (r RateTable) {
	for j, v := range list {
		r[j/int(terms)][j%int(terms)] = v
	}
	return r
}

// absent returns the terms that have no rate.
func absent(r *RateTable) (without []bool) {
	for c := range r {
		for _, v := range r[c] {
			without = append(without, v == 0)
		}
	}
	return without
}

// samplesOf returns the loads of the samples on an engine, and their times.
func samplesOf(t *testing.T, r *EngineRates, engine int, list []sampleTime) *ratetest.Samples {
	samples := &ratetest.Samples{Terms: int(terms)}
	for _, s := range list {
		if s.ns[engine] == 0 {
			continue
		}
		g := graphtest.RateGraph(s.kind, s.seed)
		shapes, err := g.Declared()
		if err != nil {
			t.Fatal(err)
		}
		samples.Add(flat(LoadOf(g, shapes, r, engine, make([]bool, g.Inputs), 1)), s.ns[engine])
	}
	return samples
}

// programTime is the measured time of a program, in nanoseconds, by engine, and the loads of its delegates.
type programTime struct {
	ns     [2]float64
	loads  [2]Load
	others bool // it has instructions that do not call a delegate
}

// readPrograms returns the measured programs of an instruction set, if there are any: nodes take longer in programs than
// where they run alone.
func readPrograms(t *testing.T, set string) (list []programTime) {
	data, err := os.ReadFile(filepath.Join("testdata", "rates", set+"_programs.tsv"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		p := programTime{others: f[4] != "0"}
		if _, err := fmt.Sscan(f[1]+" "+f[2], &p.ns[ByLibrary], &p.ns[ByGo]); err != nil {
			t.Fatal(f[0], err)
		}
		for _, part := range strings.FieldsFunc(f[3], func(r rune) bool { return r == ' ' || r == ';' }) {
			var e, c, k int
			var n float64
			if _, err := fmt.Sscanf(part, "%d,%d,%d=%g", &e, &c, &k, &n); err != nil {
				t.Fatal(f[0], err)
			}
			p.loads[e][c][k] += n
		}
		list = append(list, p)
	}
	return list
}

// programWeight is how much a program counts relative to a sample.
const programWeight = 3

// addPrograms adds programs to the samples of both engines: first those that only call delegates. By the rates that fit then,
// the other instructions of the rest take what is left of its time on the engine with less left. The remainder is that of the
// delegates, and counts if it is most of the time.
func addPrograms(samples *[2]*ratetest.Samples, list []programTime) {
	var first [2]RateTable
	for engine, s := range samples {
		for _, p := range list {
			if !p.others {
				addProgram(s, &p.loads[engine], p.ns[engine])
			}
		}
		first[engine] = tableOf(s.FitWithout(make([]bool, int(classes)*int(terms))))
	}
	for _, p := range list {
		if !p.others {
			continue
		}
		left := math.Inf(1)
		for engine := range samples {
			left = min(left, p.ns[engine]-p.loads[engine].Nanoseconds(&first[engine]))
		}
		for engine, s := range samples {
			if own := p.ns[engine] - max(left, 0); own > p.ns[engine]/2 {
				addProgram(s, &p.loads[engine], own)
			}
		}
	}
}

func addProgram(s *ratetest.Samples, l *Load, ns float64) {
	for range programWeight {
		s.Add(flat(l), ns)
	}
}

// writeRates writes the Go file of an instruction set.
func writeRates(t *testing.T, set, head string, old *[2]EngineRates, fitted *[2]RateTable) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "// Code generated by make rates. DO NOT EDIT.\n\npackage cost\n\n// %s are nanoseconds on %s.\nvar %s = [2]EngineRates{\n",
		rateVariables[set], head, rateVariables[set])
	for engine, name := range []string{ByLibrary: "ByLibrary", ByGo: "ByGo"} {
		x := old[engine].tiles
		fmt.Fprintf(&b, "%s: {tiles: tiles{floats: tile{%d, %d}, halves: tile{%d, %d}, bytes: tile{%d, %d}}, Rates: RateTable{\n", name,
			x.floats.columns, x.floats.depth, x.halves.columns, x.halves.depth, x.bytes.columns, x.bytes.depth)
		count := 0
		for c, row := range fitted[engine] {
			var terms []string
			for k, v := range row {
				if v > 0 {
					terms = append(terms, fmt.Sprintf("%s: %.3g", termNames[k], v))
				}
			}
			if count += len(terms); len(terms) > 0 {
				fmt.Fprintf(&b, "%s: {%s},\n", classNames[c], strings.Join(terms, ", "))
			}
		}
		t.Logf("%s, %s: %d rates", set, name, count)
		b.WriteString("}},\n")
	}
	b.WriteString("}\n")
	text, err := format.Source(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("rates_"+set+".go", text, 0o666); err != nil {
		t.Fatal(err)
	}
}

var rateVariables = map[string]string{setAVX512: "ratesAVX512", setAVX2: "ratesAVX2", setNEON: "ratesNEON", setDotprod: "ratesDotprod", setI8MM: "ratesI8MM", setNone: "ratesNone"}

// Names in files.
var (
	classNames = [classes]string{"classGraph", "classWeights", "classProduct32", "classWindow32", "classGroups32", "classProduct16", "classNarrow32", "classProduct8", "classDynamic8", "classDynamic4",
		"classBatch", "classDepthwise32", "classDepthwise8", "classTransposed32", "classTransposed8", "classPool32", "classPool8", "classMean",
		"classSoftmax", "classResize", "classCopy32", "classCopy8", "classBinary32", "classBinary8", "classFunction32", "classLogarithm",
		"classTable8", "classQuantize", "classQuantizeRows", "classConvert", "classTranspose32", "classTranspose8"}
	termNames = [terms]string{"termStart", "termRow", "termTap", "termWork", "termElement", "termWeight"}
)
