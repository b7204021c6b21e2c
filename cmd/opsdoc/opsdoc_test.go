package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels"
)

func TestPageIsCurrent(t *testing.T) {
	want, err := render(etrun.DefaultOperators())
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs/operators.md")
	if err != nil {
		t.Fatal(err)
	}
	gotLines, wantLines := bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
	for i, line := range wantLines {
		if i >= len(gotLines) || !bytes.Equal(gotLines[i], line) {
			t.Fatalf("docs/operators.md is stale from line %d on; run go run ./cmd/opsdoc", i+1)
		}
	}
	if len(gotLines) != len(wantLines) {
		t.Fatalf("docs/operators.md has %d lines, the tables give %d; run go run ./cmd/opsdoc", len(gotLines), len(wantLines))
	}
}

// upstream reads the list of ExecuTorch's operators: group, and schema or name.
func upstream(t *testing.T) (list [][2]string) {
	data, err := os.ReadFile("testdata/operators.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		group, schema, _ := strings.Cut(strings.TrimSpace(line), " ")
		list = append(list, [2]string{group, schema})
	}
	return list
}

func TestUpstreamsOperatorsArePresent(t *testing.T) {
	set := etrun.DefaultOperators()
	for _, u := range upstream(t) {
		name, _, _ := strings.Cut(u[1], "(")
		_, got, ok, err := set.Lookup(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !ok {
			t.Errorf("%s: missing (%s)", name, u[0])
			continue
		}
		if u[0] == "prim" { // upstream declares no arguments
			continue
		}
		want, err := kernels.ParseSchema(u[1])
		if err != nil {
			t.Fatal(err)
		}
		compare(t, got, want)
	}
}

// compare checks that two signatures take the same arguments.
func compare(t *testing.T, got, want *kernels.Signature) {
	if len(got.Args) != len(want.Args) {
		t.Errorf("%s: %d arguments, upstream has %d", got.Name, len(got.Args), len(want.Args))
		return
	}
	for i, w := range want.Args {
		g := got.Args[i]
		if g.Name != w.Name || kind(g.Type) != kind(w.Type) || g.Out != w.Out {
			t.Errorf("%s: argument %d is %s %s (out: %v), upstream has %s %s (out: %v)", got.Name, i, g.Type, g.Name, g.Out, w.Type, w.Name, w.Out)
		}
	}
}

// kind is a type without what upstream's list does not tell apart.
func kind(typ string) string {
	for _, same := range []string{"SymInt", "ScalarType", "MemoryFormat"} {
		typ = strings.Replace(typ, same, "int", 1)
	}
	return typ
}
