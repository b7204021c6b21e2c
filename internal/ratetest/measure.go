package ratetest

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

var kindsFlag = flag.String("rate-kinds", "", "with -measure-rates: measure only these kinds of samples, separated by commas, and keep the others")

// Run does what is measured n times. Where units run in turns, each has run once before: first runs plan their work.
type Run func(n int)

const (
	rounds    = 15
	counts    = 3                      // of instructions: those of the Go runtime's threads are among them
	batchTime = 200 * time.Microsecond // of runs that are measured together: the first ones after another graph take longer
	countTime = 100e3                  // of runs that are counted together: starting and ending a count takes up to 300 ns
)

// Measure returns the shortest time of each run in nanoseconds, averaged over batches and measured in turns. With
// -rate-counts it counts instructions instead.
func Measure(runs ...Run) (ns []float64, err error) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	if *countsFlag != "" {
		return countAll(runs)
	}
	batches := make([]int, len(runs))
	for i, run := range runs {
		run(2)
		batches[i] = 1
		for range 2 {
			batches[i] = 1 + int(batchTime*time.Duration(batches[i])/(timeOf(run, batches[i])+1))
		}
		ns = append(ns, math.Inf(1))
	}
	for range rounds {
		for i, run := range runs {
			ns[i] = min(ns[i], float64(timeOf(run, batches[i]))/float64(batches[i]))
		}
	}
	return ns, nil
}

func countAll(runs []Run) (ns []float64, err error) {
	for _, run := range runs {
		run(2)
		first, err := countOf(run, 2)
		if err != nil {
			return nil, err
		}
		least, together := math.Inf(1), 2+int(countTime/first)
		for range counts {
			n, err := countOf(run, together)
			if err != nil {
				return nil, err
			}
			least = min(least, n)
		}
		ns = append(ns, least)
	}
	return ns, nil
}

func timeOf(run Run, n int) time.Duration {
	start := time.Now()
	run(n)
	return time.Since(start)
}

// Table is a file of measurements: a line that says where and when they were made, and a line for each.
type Table struct {
	Head string
	Rows [][]string
}

// Add appends a row. Times are rounded to four digits.
func (t *Table) Add(cells ...any) {
	var row []string
	for _, c := range cells {
		if f, ok := c.(float64); ok {
			c = fmt.Sprintf("%.4g", f)
		}
		row = append(row, fmt.Sprint(c))
	}
	t.Rows = append(t.Rows, row)
}

// NewTable returns a table that is measured on this machine now. with names what else the times depend on.
func NewTable(with ...string) *Table {
	return &Table{Head: strings.Join(append([]string{processorName(), time.Now().Format("January 2006")}, with...), ", ")}
}

// Update returns the table of a file with some kinds measured again: all, or those of -rate-kinds. measure adds the rows of a
// kind, whose first cells are its name. A kind that is not in the file is measured too.
func Update(path string, kinds []string, with []string, measure func(t *Table, kind string)) *Table {
	t, old := NewTable(with...), &Table{}
	if *kindsFlag != "" {
		if read, err := Read(path); err == nil {
			old = read
		}
	}
	for _, kind := range kinds {
		kept := old.rowsOf(kind)
		if slices.Contains(strings.Split(*kindsFlag, ","), kind) || len(kept) == 0 {
			measure(t, kind)
		} else {
			t.Rows = append(t.Rows, kept...)
		}
	}
	return t
}

func (t *Table) rowsOf(kind string) (rows [][]string) {
	for _, row := range t.Rows {
		if row[0] == kind {
			rows = append(rows, row)
		}
	}
	return rows
}

// Write writes a table to a file.
func (t *Table) Write(path string) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n", t.Head)
	for _, row := range t.Rows {
		fmt.Fprintln(&b, strings.Join(row, "\t"))
	}
	return os.WriteFile(path, b.Bytes(), 0o666)
}

// Read reads a table from a file.
func Read(path string) (*Table, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	head, rest, _ := strings.Cut(string(data), "\n")
	t := &Table{Head: strings.TrimPrefix(head, "# ")}
	for line := range strings.Lines(rest) {
		t.Rows = append(t.Rows, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return t, nil
}

func processorName() string {
	data, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(data)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimLeft(strings.TrimSpace(name), ":\t ")
		}
	}
	return "a processor without a name"
}
