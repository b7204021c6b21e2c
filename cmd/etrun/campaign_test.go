//go:build linux

package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/internal/campaign"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// campaignMemory is the memory limit of command lines in campaigns.
const campaignMemory = 64 << 20

// attackFiles is a campaign of command lines that read one hostile file.
func attackFiles(t *testing.T, name string, usual uint64, start func(t *testing.T) func(r *rand.Rand, seed uint64) (file []byte, ending, line string)) {
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	names := strings.NewReplacer("HERE", here+"/testdata", "PTE", here+"/../../testdata/pte", "DIGITS", here+"/../../testdata/digits")
	c := &campaign.Campaign{Test: name, Usual: usual, Memory: campaignMemory + 64<<20, Counters: []string{"files", "read to the end"},
		Start: func(t *testing.T, p *campaign.Process) func(seed uint64) error {
			make, folder := start(t), t.TempDir()
			return func(seed uint64) error {
				data, ending, line := make(rand.New(rand.NewPCG(seed, 6)), seed)
				file := filepath.Join(folder, "file"+ending)
				if err := os.WriteFile(file, data, 0o600); err != nil {
					t.Fatal(err)
				}
				p.Count(0, 1)
				args := strings.Fields(strings.ReplaceAll(names.Replace(line), "FILE", file))
				var out, notes bytes.Buffer
				code := run(append(args, "--max-memory", "64MiB", "--threads", "1"), strings.NewReader(""), &out, &notes)
				if code == 0 {
					p.Count(1, 1)
				}
				return wantNoFault(code, notes.String())
			}
		}}
	c.Run(t)
}

// wantNoFault returns a finding if a command line crashed.
func wantNoFault(code int, notes string) error {
	if code >= 0 && code < len(exits) && !strings.Contains(notes, "panic") && !strings.Contains(notes, "runtime error") {
		return nil
	}
	return &campaign.Finding{Kind: "fault", Message: fmt.Sprintf("exit code %d: %.1000s", code, notes)}
}

// TestInputFiles runs programs with mutated .npy, .npz, raw and image files.
func TestInputFiles(t *testing.T) {
	attackFiles(t, "TestInputFiles", 300, func(t *testing.T) func(r *rand.Rand, seed uint64) ([]byte, string, string) {
		pictures := readAll(t, "../../media/picture/testdata/*.png", "../../media/picture/testdata/*.jpg")
		pictures = append(pictures, corpusFiles(".png", ".jpg", ".jpeg")...)
		return func(r *rand.Rand, _ uint64) ([]byte, string, string) {
			switch r.IntN(5) {
			case 0:
				return mutateArray(r), ".npy", "DIGITS/portable.pte --input FILE"
			case 1, 2:
				return mutateArchive(r), ".npz", "DIGITS/portable.pte --input FILE"
			}
			return mutatePicture(r, pictures[r.IntN(len(pictures))]), ".png", "DIGITS/portable.pte --input FILE:size=8x8"
		}
	})
}

// TestDataFiles runs a program with mutated weight files.
func TestDataFiles(t *testing.T) {
	attackFiles(t, "TestDataFiles", 200, func(t *testing.T) func(r *rand.Rand, seed uint64) ([]byte, string, string) {
		return mutants(readAll(t, "../../testdata/pte/*.ptd"), ".ptd", "PTE/external_weights.pte --data FILE --input ones")
	})
}

// TestBundleFiles verifies mutated bundled programs.
func TestBundleFiles(t *testing.T) {
	attackFiles(t, "TestBundleFiles", 200, func(t *testing.T) func(r *rand.Rand, seed uint64) ([]byte, string, string) {
		return mutants(readAll(t, "../../testdata/pte/*.bpte"), ".bpte", "verify FILE")
	})
}

// TestCheckedFiles checks mutated programs.
func TestCheckedFiles(t *testing.T) {
	attackFiles(t, "TestCheckedFiles", 300, func(t *testing.T) func(r *rand.Rand, seed uint64) ([]byte, string, string) {
		seeds := readAll(t, "../../testdata/pte/*.pte", "../../testdata/ethosu/programs/*.pte")
		return mutants(seeds, ".pte", "check FILE")
	})
}

// TestLoweredFiles lowers mutated programs.
func TestLoweredFiles(t *testing.T) {
	attackFiles(t, "TestLoweredFiles", 200, func(t *testing.T) func(r *rand.Rand, seed uint64) ([]byte, string, string) {
		seeds := readAll(t, "../../testdata/pte/*.pte", "../../testdata/digits/*.pte", "../../testdata/repair/*.pte")
		return mutants(seeds, ".pte", "lower FILE --all -o /dev/null")
	})
}

// TestQuantizedFiles quantizes mutated programs with each scheme.
func TestQuantizedFiles(t *testing.T) {
	attackFiles(t, "TestQuantizedFiles", 200, func(t *testing.T) func(r *rand.Rand, seed uint64) ([]byte, string, string) {
		seeds := readAll(t, "../../testdata/pte/*.pte", "../../testdata/digits/*.pte", "../../testdata/repair/*.pte")
		calibrated := mutants(readAll(t, "../../testdata/digits/*.pte"), ".pte",
			"quantize FILE -o /dev/null --scheme q8 --calibrate DIGITS/samples/3")
		byScheme := make([]func(*rand.Rand, uint64) ([]byte, string, string), 0, 4)
		for _, line := range []string{"--scheme dq8 --all", "--scheme 8da4w", "--scheme w8"} {
			byScheme = append(byScheme, mutants(seeds, ".pte", "quantize FILE -o /dev/null "+line))
		}
		byScheme = append(byScheme, calibrated)
		return func(r *rand.Rand, seed uint64) ([]byte, string, string) {
			return byScheme[r.IntN(len(byScheme))](r, seed)
		}
	})
}

// TestWrittenFiles runs mutants of programs that lower and quantize wrote.
func TestWrittenFiles(t *testing.T) {
	attackFiles(t, "TestWrittenFiles", 200, func(t *testing.T) func(r *rand.Rand, seed uint64) ([]byte, string, string) {
		return mutants(writtenFiles(t), ".pte", "run FILE --lower off")
	})
}

// writtenFiles returns what lower and quantize write for programs of the tests.
func writtenFiles(t *testing.T) (list [][]byte) {
	t.Helper()
	to := filepath.Join(t.TempDir(), "out.pte")
	for _, line := range []string{"lower ../../testdata/digits/portable.pte --all", "lower ../../testdata/pte/two_conds.pte --all",
		"lower ../../testdata/pte/two_methods.pte --all", "lower ../../testdata/views/wide_view.pte --all",
		"quantize ../../testdata/digits/portable.pte --scheme dq8 --all", "quantize ../../testdata/digits/portable.pte --scheme 8da4w",
		"quantize ../../testdata/digits/portable.pte --scheme w8",
		"quantize ../../testdata/digits/portable.pte --scheme q8 --calibrate ../../testdata/digits/samples/3"} {
		var out, notes bytes.Buffer
		if code := run(append(strings.Fields(line), "-o", to), strings.NewReader(""), &out, &notes); code != 0 {
			t.Fatalf("%s: exit code %d: %s", line, code, &notes)
		}
		data, err := os.ReadFile(to)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, data)
	}
	return list
}

// mutants returns files with changed fields or bytes, from seeds and from the corpus's files
// with the ending.
func mutants(seeds [][]byte, ending, line string) func(r *rand.Rand, seed uint64) ([]byte, string, string) {
	seeds = append(seeds, corpusFiles(ending)...)
	return func(r *rand.Rand, seed uint64) ([]byte, string, string) {
		data, _ := ptetest.Mutate(seeds[r.IntN(len(seeds))], seed, 1+r.IntN(3))
		return data, ending, line
	}
}

func readAll(t *testing.T, patterns ...string) (list [][]byte) {
	t.Helper()
	for _, pattern := range patterns {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%d files like %s, %v", len(names), pattern, err)
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, data)
		}
	}
	return list
}

// corpusFiles returns the smaller files of the campaign's corpus.
func corpusFiles(endings ...string) (list [][]byte) {
	for _, name := range campaign.Corpus(endings...) {
		if data, err := os.ReadFile(name); err == nil && len(data) <= 256<<10 {
			list = append(list, data)
		}
	}
	return list
}
