package main

import (
	"bytes"
	"os"
	"testing"
)

// TestCurrent fails where the table changed and the calls were not written again.
func TestCurrent(t *testing.T) {
	want, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../calls_cgo.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("calls_cgo.go is not what the table says: run go generate ./cbindings/xnn")
	}
}
