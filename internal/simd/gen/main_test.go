package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCurrent fails where the table changed and the loops were not written again, and
// where a file is left of a table that no longer writes it.
func TestCurrent(t *testing.T) {
	files, err := generate("..")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the table says: run go generate ./internal/simd", name)
		}
	}
	all, err := filepath.Glob("../*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		source, err := os.ReadFile(path)
		if err != nil {
			continue // a folder
		}
		if _, ok := files[filepath.Base(path)]; !ok && bytes.HasPrefix(source, []byte(generated)) {
			t.Errorf("%s: no row of the table writes it", path)
		}
	}
}

// TestOffsets wants every assembly function, hand-written ones as well, to name each of
// its arguments with its offset, and no macro to do so: go vet compares what stands in a
// function with its declaration, and does not look into macros.
func TestOffsets(t *testing.T) {
	paths, err := filepath.Glob("../*.s")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	macro := regexp.MustCompile(`(?m)^#define.*(\\\n.*)*\(FP\)`)
	function := regexp.MustCompile(`(?m)^// func (\w+)\((.*?)\)(?: \(?(.*?)\)?)?\n(?://.*\n)*TEXT ·(\w+)\(SB\)`)
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if m := macro.Find(source); m != nil {
			t.Errorf("%s: arguments in a macro: %s", path, m)
		}
		found := function.FindAllSubmatchIndex(source, -1)
		if n := bytes.Count(source, []byte("\nTEXT ")); n != len(found) {
			t.Errorf("%s: %d functions, %d with their declarations", path, n, len(found))
		}
		for i, m := range found {
			end := len(source)
			if i+1 < len(found) {
				end = found[i+1][0]
			}
			checkOffsets(t, path, string(source[m[2]:m[3]]), string(source[m[4]:m[5]]), source[m[1]:end])
		}
	}
}

func checkOffsets(t *testing.T, path, name, params string, body []byte) {
	t.Helper()
	for p := range strings.SplitSeq(params, ", ") {
		p, _, _ = strings.Cut(p, " ")
		if !regexp.MustCompile(`\b` + p + `\+\d+\(FP\)`).Match(body) {
			t.Errorf("%s: %s does not name its argument %s", path, name, p)
		}
	}
}

func TestFrame(t *testing.T) {
	l := &loop{lanes: "f", scalars: []string{"low", "high", "mid"},
		kind: inner("uint8", "ret float32", operand{"a", "int32"}, operand{"b", "int32"})}
	const want = "func f(n int, dst *uint8, a, b *int32, low, high, mid int32) (ret float32)"
	if got := l.signature(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	f := l.frame()
	if got := f.at("mid") + " " + f.at("ret"); f.size != 52 || got != "mid+40(FP) ret+48(FP)" {
		t.Errorf("got %s of %d bytes", got, f.size)
	}
}

func TestLower(t *testing.T) {
	for name, want := range map[string]string{
		"Add": "add", "ELU": "elu", "GELUTanh": "geluTanh", "LeakyReLU": "leakyReLU", "BFloatToHalf": "bFloatToHalf", "Int8To": "int8To",
	} {
		if got := lower(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}
