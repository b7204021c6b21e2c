package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// run runs the program with another standard output.
func run(out *os.File) {
	defer func(stdout *os.File) { os.Stdout = stdout }(os.Stdout)
	os.Stdout = out
	main()
}

// TestFirst requires the scores of ten digits. On an error the program ends the process.
func TestFirst(t *testing.T) {
	t.Chdir("../..")
	path := filepath.Join(t.TempDir(), "out")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	run(out)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if scores := strings.Fields(strings.Trim(string(text), "[]\n")); len(scores) != 10 || scores[0] == scores[1] {
		t.Errorf("got %q, want ten scores", text)
	}
}
