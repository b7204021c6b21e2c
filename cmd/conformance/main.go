// Command conformance runs a corpus of programs and compares the outputs with known ones.
//
// A corpus is a folder with a manifest.json that lists cases, or with zip files of cases
// of single operators (a kNNN.json each). Inputs and outputs are files of raw elements in
// the program's memory order. The exit code is 1 if a case fails.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/etrun-go/etrun"
)

func main() {
	corpus := flag.String("corpus", "", "folder of the corpus")
	filter := flag.String("filter", "", "regular expression of cases to run")
	engine := flag.String("xnnpack", "auto", "XNNPACK engine: auto, native or go")
	lower := flag.String("lower", string(etrun.LowerAuto), "lowering at load: auto, rewrite or off")
	limit := flag.Duration("timeout", time.Minute, "time limit per case")
	jobs := flag.Int("j", runtime.GOMAXPROCS(0), "number of parallel cases")
	table := flag.Bool("table", false, "print one line per operator or program")
	flag.Parse()
	cases, err := load(*corpus)
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(2)
	}
	wanted, err := regexp.Compile(*filter)
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(2)
	}
	lowering := etrun.Lowering(*lower)
	if !slices.Contains([]etrun.Lowering{etrun.LowerOff, etrun.LowerRewrite, etrun.LowerAuto}, lowering) {
		fmt.Fprintf(os.Stderr, "conformance: -lower %q, want auto, rewrite or off\n", *lower)
		os.Exit(2)
	}
	r := runner{engine: *engine, lowering: lowering, limit: *limit}
	all := r.all(cases, wanted, *jobs)
	if *table {
		all.print(os.Stdout)
	}
	total := all.total()
	fmt.Printf("%d passed, %d failed\n", total.passed, total.failed)
	if total.failed > 0 {
		os.Exit(1)
	}
}

type runner struct {
	engine   string
	lowering etrun.Lowering
	limit    time.Duration
}

// all runs the selected cases and prints the failures.
func (r runner) all(cases []*testCase, wanted *regexp.Regexp, jobs int) tally {
	var (
		mu     sync.Mutex
		wait   sync.WaitGroup
		counts = tally{}
		work   = make(chan *testCase)
	)
	for range jobs {
		wait.Go(func() {
			for c := range work {
				refused, err := r.one(c)
				mu.Lock()
				counts.add(c.name, refused, err)
				if err != nil {
					fmt.Printf("FAIL %s: %v\n", c.name, err)
				}
				mu.Unlock()
			}
		})
	}
	for _, c := range cases {
		if wanted.MatchString(c.name) {
			work <- c
		}
	}
	close(work)
	wait.Wait()
	return counts
}

// one runs a case; refused reports that it passed with an expected or accepted error.
func (r runner) one(c *testCase) (refused bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), r.limit)
	defer cancel()
	err = r.run(ctx, c)
	switch {
	case c.refuse && err == nil:
		return false, fmt.Errorf("accepted, want an error")
	case c.refuse || c.mayRefuse && isRefusal(err):
		return true, nil
	}
	return false, err
}
