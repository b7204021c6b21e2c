package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTokenize(t *testing.T) {
	tokenizers, err := filepath.Abs(filepath.Join(root, "text", "testdata"))
	must(t, err)
	tok := filepath.Join(tokenizers, "bytes.json")
	for _, c := range []struct {
		name, args, in string
		code           int
		out, notes     string
	}{
		{"text", "TOK Hi", "", 0, "72 105\n", ""},
		{"standard input", "TOK", "é\n", 0, "195 169 10\n", ""},
		{"a dash", "TOK -", "a", 0, "97\n", ""},
		{"empty", "TOK", "", 0, "\n", ""},
		{"pieces", "TOK é --pieces", "", 0, "195\t\"�\"\n169\t\"�\"\n", ""},
		{"tokens", "TOK --decode", "[72, 105,\n10]", 0, "Hi\n", ""},
		{"no tokens", "TOK -d", "", 0, "", ""},
		{"control characters", "TOK -d 27,7", "", 0, "\x1b\a", ""},
		{"JSON", "TOK Hi --json", "", 0, `"text": "Hi",` + "\n" + `  "count": 2,`, ""},
		{"JSON of no tokens", "TOK --json", "", 0, `"tokens": []`, ""},
		{"no numbers", "TOK -d 72,x", "", 2, "", `token 1: "x" is not a number`},
		{"a large number", "TOK -d 99999999999999999999", "", 2, "", "is not a number"},
		{"no token", "TOK -d 72,100000", "", 5, "", "100000"},
		{"a negative token", "TOK -d -- -1", "", 5, "", "-1"},
		{"options of texts", "TOK -d 72 --special", "", 2, "", "--special"},
		{"no first token", "TOK Hi --bos", "", 2, "", "no first token"},
		{"nothing", "", "", 2, "", "want TOKENIZER"},
		{"three", "TOK a b", "", 2, "", "want TOKENIZER"},
		{"no file", "none.json a", "", 2, "", "none.json"},
		{"no tokenizer", "noise.json a", "", 4, "", "not a tokenizer.json"},
		{"a long text", "TOK", strings.Repeat("x", 16<<20+1), 2, "", "longer than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			must(t, os.WriteFile("noise.json", bytes.Repeat([]byte("noise "), 100), 0o600))
			var out, notes bytes.Buffer
			args := strings.Fields("tokenize " + strings.ReplaceAll(c.args, "TOK", tok))
			code := run(args, strings.NewReader(c.in), &out, &notes)
			same := out.String() == c.out || strings.Contains(c.args, "--json") && strings.Contains(out.String(), c.out)
			if code != c.code || c.code == 0 && !same || !strings.Contains(notes.String(), c.notes) {
				t.Errorf("got %d, %.200q, %.300q; want %d, %q, %q", code, out.String(), notes.String(), c.code, c.out, c.notes)
			}
		})
	}
}

// What is encoded is decoded again, with the first token and control tokens of a real tokenizer's form.
func TestTokenizeAndBack(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "text", "tokenizer", "testdata", "*"))
	must(t, err)
	ran := 0
	for _, file := range files {
		var ids, notes, back bytes.Buffer
		const text = "Once upon a time, 3 times."
		if run([]string{"tokenize", file, text}, strings.NewReader(""), &ids, &notes) != 0 {
			continue // not a tokenizer, or one without some of the letters
		}
		if code := run([]string{"tokenize", file, "-d"}, &ids, &back, &notes); code != 0 {
			t.Errorf("%s: %d %s", file, code, notes.String())
		}
		if back.String() == text {
			ran++
		}
	}
	if ran < 1 {
		t.Errorf("%d of %d files are tokenizers that keep the text", ran, len(files))
	}
}
