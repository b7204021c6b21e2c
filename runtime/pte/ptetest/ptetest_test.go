package ptetest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// same compares descriptions: empty lists equal missing ones, NaN equals NaN, and the container may
// differ.
var same = cmp.Options{cmpopts.EquateEmpty(), cmpopts.EquateNaNs(), cmpopts.IgnoreFields(pte.Program{}, "Header", "Size")}

func files(t *testing.T, pattern string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("../../../testdata/pte", pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d files like %s, %v", len(paths), pattern, err)
	}
	out := map[string][]byte{}
	for _, p := range paths {
		if out[filepath.Base(p)], err = os.ReadFile(p); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func parse(t *testing.T, data []byte) *pte.Program {
	t.Helper()
	p, err := pte.Parse(data, pte.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestRoundTrip writes what was read, in each layout, and reads it again.
func TestRoundTrip(t *testing.T) {
	programs := map[string]*pte.Program{"sample": ptetest.Sample()}
	for name, data := range files(t, "*.pte") {
		programs[name] = parse(t, data)
	}
	for name, p := range programs {
		for _, layout := range []ptetest.Layout{{}, {Inline: true}, {OldHeader: true}} {
			if diff := cmp.Diff(p, parse(t, ptetest.Write(p, layout)), same); diff != "" {
				t.Errorf("%s, layout %+v, read to written:\n%s", name, layout, diff)
			}
		}
	}
}

func TestRoundTripData(t *testing.T) {
	for name, data := range files(t, "*.ptd") {
		d, err := pte.ParseData(data, pte.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := pte.ParseData(ptetest.WriteData(d), pte.Limits{})
		if diff := cmp.Diff(d, got, same); err != nil || diff != "" {
			t.Errorf("%s: %v, read to written:\n%s", name, err, diff)
		}
	}
}

func TestRoundTripBundle(t *testing.T) {
	for name, data := range files(t, "*.bpte") {
		b, err := pte.ParseBundle(data, pte.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := pte.ParseBundle(ptetest.WriteBundle(b), pte.Limits{})
		if diff := cmp.Diff(b, got, same); err != nil || diff != "" {
			t.Errorf("%s: %v, read to written:\n%s", name, err, diff)
		}
	}
}

// TestDecode decodes files and encodes them again.
func TestDecode(t *testing.T) {
	for name, data := range files(t, "*.pte") {
		f, err := ptetest.Decode(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(parse(t, data), parse(t, f.Bytes()), same); diff != "" {
			t.Errorf("%s, file to decoded and written:\n%s", name, diff)
		}
	}
}

// TestMutate requires that most changes affect data that the reader reads: otherwise a fuzzer that
// uses them would test nothing.
func TestMutate(t *testing.T) {
	for name, data := range files(t, "*.pte") {
		p := parse(t, data)
		const n = 100
		refused, changed := 0, 0
		for seed := range uint64(n) {
			mutated, log := ptetest.Mutate(data, seed, 1)
			if again, _ := ptetest.Mutate(data, seed, 1); !bytes.Equal(mutated, again) {
				t.Fatalf("%s, seed %d: another file the second time (%v)", name, seed, log)
			}
			got, err := pte.Parse(mutated, pte.Limits{})
			switch {
			case err != nil || slices.ContainsFunc(got.Methods, func(m pte.Method) bool { return m.Err != nil }):
				refused++
			case !reflect.DeepEqual(p.Methods, got.Methods):
				changed++
			}
		}
		if refused < n/5 || changed < n/20 {
			t.Errorf("%s: of %d mutations %d were refused, %d gave another program", name, n, refused, changed)
		}
	}
}
