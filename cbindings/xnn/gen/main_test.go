package main

import (
	"bytes"
	"os"
	"testing"
)

// TestCurrent checks that calls_cgo.go was regenerated after the last change of the table.
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
		t.Error("calls_cgo.go does not match the table: run go generate ./cbindings/xnn")
	}
}
