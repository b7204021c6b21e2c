// Package ethosutest (no compatibility promise) reads the test archives of Ethos-U
// payloads (testdata/ethosu).
package ethosutest

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"testing"
)

// Vector is one delegate call: a payload, its inputs and its expected outputs.
type Vector struct {
	Name  string            // "u55-128/conv3x3/d0"
	Files map[string][]byte // "payload.vela", "in0.bin", "out0.bin", "dis.txt", …
}

// Payload returns the delegate's payload.
func (v *Vector) Payload() []byte { return v.Files["payload.vela"] }

// Block returns the contents of a block of the payload, nil if there is none of that name.
func (v *Vector) Block(name string) []byte {
	const header, align = 32, 16
	for b := v.Payload(); len(b) >= header; {
		size := int(binary.LittleEndian.Uint32(b[align:]))
		if string(bytes.TrimRight(b[:align], "\x00")) == name {
			return b[header : header+size]
		}
		b = b[header+(size+align-1)/align*align:]
	}
	return nil
}

// Vectors reads the archives whose names match a pattern ("*", "u85-256"), in order.
func Vectors(t testing.TB, pattern string) []*Vector {
	t.Helper()
	archives, err := filepath.Glob(filepath.Join(root(t), "testdata", "ethosu", pattern+".zip"))
	if err != nil || len(archives) == 0 {
		t.Fatalf("test archives %q: %d found, %v", pattern, len(archives), err)
	}
	var out []*Vector
	for _, a := range archives {
		out = append(out, read(t, a)...)
	}
	return out
}

// Find returns the vector with the given name.
func Find(t testing.TB, name string) *Vector {
	t.Helper()
	archive, _, _ := strings.Cut(name, "/")
	for _, v := range Vectors(t, archive) {
		if v.Name == name {
			return v
		}
	}
	t.Fatalf("no vector %q in the test archives", name)
	return nil
}

func read(t testing.TB, archive string) (out []*Vector) {
	t.Helper()
	z, err := zip.OpenReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	byName := map[string]*Vector{}
	for _, f := range z.File {
		name := path.Join(strings.TrimSuffix(filepath.Base(archive), ".zip"), path.Dir(f.Name))
		v := byName[name]
		if v == nil {
			v = &Vector{name, map[string][]byte{}}
			byName[name], out = v, append(out, v)
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if v.Files[path.Base(f.Name)], err = io.ReadAll(r); err != nil {
			t.Fatalf("%s: %s: %v", archive, f.Name, err)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// root returns the root folder of the module.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test's folder")
		}
		dir = filepath.Dir(dir)
	}
}
