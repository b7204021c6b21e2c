package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"github.com/etrun-go/etrun/cmd/etrun/internal/evaluate"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
)

// sample is a file with the inputs of a call.
type sample struct {
	path    string
	follows bool // the call has the state of the one before it
}

// maxSamples limits the files of --calibrate.
const maxSamples = 1 << 16

// calibration is an argument of --calibrate or --next.
type calibration struct {
	path string
	next bool
}

// addCalibrate adds the flags of samples.
func (q *quantizeCommand) addCalibrate(flags interface {
	Func(name, usage string, set func(string) error)
}) {
	add := func(next bool) func(string) error {
		return func(path string) error {
			if next && len(q.calibrate) == 0 {
				return errors.New("want --calibrate FILE before it, for the first call")
			}
			q.calibrate = append(q.calibrate, calibration{path, next})
			return nil
		}
	}
	flags.Func("calibrate", "inputs of calls: `FILE`, or folder of files, which are calls of one sequence; may be repeated", add(false))
	flags.Func("next", "`FILE` with the inputs of a further call of the sequence; may be repeated", add(true))
}

// samples lists the files of --calibrate and --next, those of folders in the order of their paths. Files of one folder are the calls
// of a sequence: programs without state have the same results for any.
func (q *quantizeCommand) samples(ctx context.Context) (list []sample, err error) {
	for _, from := range q.calibrate {
		info, err := os.Stat(from.path)
		if err != nil {
			return nil, session.Usage("--calibrate %v", err)
		}
		if !info.IsDir() {
			list = append(list, sample{from.path, from.next})
			continue
		}
		if from.next {
			return nil, session.Usage("--next %s is a folder: the files of a folder are a sequence of their own, with --calibrate", from.path)
		}
		paths, err := sampleFiles(ctx, from.path)
		if err != nil {
			return nil, err
		}
		for i, path := range paths {
			list = append(list, sample{path, i > 0 && filepath.Dir(paths[i-1]) == filepath.Dir(path)})
		}
	}
	return list, nil
}

// sampleFiles lists the files of a folder and its folders: numbers in names are in ascending order.
func sampleFiles(ctx context.Context, folder string) (list []string, err error) {
	err = evaluate.Files(ctx, folder, sampleTypes, maxSamples, func(path string) error {
		list = append(list, path)
		return nil
	})
	if err == nil && len(list) == 0 {
		err = session.Usage("--calibrate %s: no files with the extensions %s", folder, strings.Join(sampleTypes, " "))
	}
	sort.Slice(list, func(i, k int) bool {
		a, b := list[i], list[k]
		return cmp.Or(strings.Compare(filepath.Dir(a), filepath.Dir(b)), comparePaths(a, b)) < 0
	})
	return list, err
}

// comparePaths compares two paths, digits by the number that they are: call2 comes before call10.
func comparePaths(a, b string) int {
	for a != "" && b != "" {
		x, restA := leadingNumber(a)
		y, restB := leadingNumber(b)
		if restA != a && restB != b && x != y {
			return int(min(max(x-y, -1), 1))
		}
		if restA == a || restB == b {
			if a[0] != b[0] {
				return int(a[0]) - int(b[0])
			}
			restA, restB = a[1:], b[1:]
		}
		a, b = restA, restB
	}
	return len(a) - len(b)
}

// leadingNumber returns the number that a text begins with, and what follows it; the text itself if it begins with none.
func leadingNumber(s string) (n int64, rest string) {
	end := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(s)
	}
	n, err := strconv.ParseInt(s[:end], 10, 63)
	if err != nil {
		return 0, s
	}
	return n, s[end:]
}

// sampleTypes are the extensions of files in folders.
var sampleTypes = []string{".npz", ".npy", ".png", ".jpg", ".jpeg", ".wav", ".bin", ".json", ".safetensors"}

// sequences counts the sequences of the samples.
func sequences(list []sample) (n int) {
	for _, x := range list {
		if !x.follows {
			n++
		}
	}
	return n
}
