package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

// Texts become vectors, and what does not fit is refused by name.
func TestEmbed(t *testing.T) {
	folder, err := filepath.Abs(filepath.Join(root, "text", "testdata", "encoders"))
	must(t, err)
	const dims = 32
	for _, c := range []struct {
		name, args, in string
		code           int
		vectors        int
		notes          string
	}{
		{"texts", "HERE/bert.pte --tokenizer HERE model program", "", 0, 2, ""},
		{"lines", "HERE/bert.pte --tokenizer HERE", "the model\r\n\na text\n", 0, 3, ""},
		{"a dash", "HERE/bert.pte --tokenizer HERE/vocab.txt --pooling cls -", "the", 0, 1, ""},
		{"nothing", "HERE/bert.pte --tokenizer HERE", "", 0, 0, ""},
		{"one vector per text", "HERE/bert.pte --tokenizer HERE/vocab.txt the", "", 5, 0, "--pooling: got none, want mean, cls or last"},
		{"no context", "HERE/bert.pte --tokenizer HERE --context -1 the", "", 5, 0, "--context: got -1"},
		{"no tokenizer", "HERE/bert.pte the", "", 2, 0, "--tokenizer"},
		{"no model", "", "", 2, 0, "MODEL.pte"},
		{"another pooling", "HERE/bert.pte --tokenizer HERE --pooling max the", "", 2, 0, "max"},
		{"a large context", "HERE/bert.pte --tokenizer HERE --context 100 the", "", 0, 1, "that is the context"},
		{"a small context", "HERE/bert.pte --tokenizer HERE --context 3 the model", "", 0, 2, ""},
		{"a long text", "HERE/bert.pte --tokenizer HERE aaaaaaaaaaaaaaaaaa", "", 5, 0, "text 0"},
		{"a long text, shortened", "HERE/bert.pte --tokenizer HERE --truncate aaaaaaaaaaaaaaaaaa the", "", 0, 2, ""},
		{"no token fits", "HERE/bert.pte --tokenizer HERE --truncate --context 1 aa", "", 5, 0, "got 1, want 2 or more"},
		{"no encoder", "HERE/../dynamic.pte --tokenizer HERE the", "", 4, 0, "not an encoder of texts"},
		{"a language model", "HERE/../dynamic.pte --tokenizer HERE/../bytes.json --pooling mean the", "", 4, 0, "want etrun generate"},
		{"other tokens", "HERE/bert.pte --tokenizer HERE/../bytes.json --pooling cls the", "", 5, 0, "do not belong together"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, notes bytes.Buffer
			code := run(strings.Fields("embed "+strings.ReplaceAll(c.args, "HERE", folder)), strings.NewReader(c.in), &out, &notes)
			if code != c.code || !strings.Contains(notes.String(), c.notes) {
				t.Fatalf("got %d, %.300q; want %d, %q", code, notes.String(), c.code, c.notes)
			}
			n := 0
			for line := range strings.Lines(out.String()) {
				var v []float64
				if must(t, json.Unmarshal([]byte(line), &v)); len(v) != dims {
					t.Errorf("%d numbers", len(v))
				}
				n++
			}
			if n != c.vectors {
				t.Errorf("%d vectors, want %d", n, c.vectors)
			}
		})
	}
}

// A program that cannot be opened is refused before texts are read.
func TestEmbedReadsTextsLast(t *testing.T) {
	var out, notes bytes.Buffer
	folder := filepath.Join(root, "text", "testdata", "encoders")
	in := iotest.ErrReader(errors.New("texts are read"))
	if code := run([]string{"embed", "none.pte", "--tokenizer", folder}, in, &out, &notes); code != 2 || !strings.Contains(notes.String(), "none.pte") {
		t.Errorf("got %d, %q", code, notes.String())
	}
}

// The files of sentence-transformers in the folder apply, unless flags say otherwise.
func TestEmbedReport(t *testing.T) {
	folder := filepath.Join(root, "text", "testdata", "encoders")
	for args, want := range map[string]struct {
		pooling    string
		normalized bool
	}{"": {"mean", true}, " --pooling last --normalize=false": {"last", false}} {
		var out, notes bytes.Buffer
		if code := run(strings.Fields("embed "+folder+"/bert.pte --tokenizer "+folder+" the --json"+args), os.Stdin, &out, &notes); code != 0 {
			t.Fatalf("%d, %s", code, notes.String())
		}
		var r struct {
			Pooling    string
			Normalized bool
			Vectors    []struct {
				Tokens int
				Vector []float32
			}
		}
		must(t, json.Unmarshal(out.Bytes(), &r))
		length := 0.0
		for _, x := range r.Vectors[0].Vector {
			length += float64(x) * float64(x)
		}
		if r.Pooling != want.pooling || r.Normalized != want.normalized || r.Vectors[0].Tokens != 3 || (math.Abs(length-1) < 1e-5) != want.normalized {
			t.Errorf("%q: %+v of length %v", args, r, length)
		}
	}
}
