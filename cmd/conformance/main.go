// Command conformance runs a corpus of programs with known outputs and compares.
//
// A corpus is a folder with a manifest.json that lists cases, or with zips of cases
// of single operators (a kNNN.json each). Inputs and outputs are files of raw
// elements in the program's memory order. The exit code is 1 where a case fails.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"sync"
	"time"
)

func main() {
	corpus := flag.String("corpus", "", "folder of the corpus")
	filter := flag.String("filter", "", "regular expression of cases to run")
	engine := flag.String("xnnpack", "auto", "XNNPACK engine: auto, native or reference")
	limit := flag.Duration("timeout", time.Minute, "time for each case")
	jobs := flag.Int("j", runtime.GOMAXPROCS(0), "cases at once")
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
	r := runner{engine: *engine, limit: *limit}
	if failed := r.all(cases, wanted, *jobs); failed > 0 {
		os.Exit(1)
	}
}

type runner struct {
	engine string
	limit  time.Duration
}

// all runs the wanted cases and says which fail.
func (r runner) all(cases []*testCase, wanted *regexp.Regexp, jobs int) (failed int) {
	var (
		mu   sync.Mutex
		wait sync.WaitGroup
		ran  int
		work = make(chan *testCase)
	)
	for range jobs {
		wait.Go(func() {
			for c := range work {
				err := r.one(c)
				mu.Lock()
				if ran++; err != nil {
					failed++
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
	fmt.Printf("%d passed, %d failed\n", ran-failed, failed)
	return failed
}

func (r runner) one(c *testCase) error {
	ctx, cancel := context.WithTimeout(context.Background(), r.limit)
	defer cancel()
	err := r.run(ctx, c)
	switch {
	case c.refuse && err == nil:
		return fmt.Errorf("accepted, an error was due")
	case c.refuse || c.mayRefuse && isRefusal(err):
		return nil
	}
	return err
}
