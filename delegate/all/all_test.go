package all

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// idMethod is the method that makes a type Backend one.
var idMethod = regexp.MustCompile(`(?m)^func \((?:\w+ )?\*?Backend\) ID\(\) string`)

// TestAll requires that each folder with a backend is in the list.
func TestAll(t *testing.T) {
	listed := make(map[string]bool)
	for _, b := range Backends() {
		listed[path.Base(reflect.TypeOf(b).PkgPath())] = true
	}
	files, err := filepath.Glob(filepath.Join("..", "*", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range files {
		folder := filepath.Base(filepath.Dir(name))
		if strings.HasSuffix(name, "_test.go") || folder == "delegatetest" {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !idMethod.Match(text) {
			continue
		}
		if found++; !listed[folder] {
			t.Errorf("%s has a backend that Backends does not list", filepath.Dir(name))
		}
	}
	if found != len(listed) {
		t.Errorf("%d backends are listed, %d found", len(listed), found)
	}
}

// TestSuites requires that the tests of each backend run the conformance suite.
func TestSuites(t *testing.T) {
	for _, b := range Backends() {
		folder := filepath.Join("..", path.Base(reflect.TypeOf(b).PkgPath()))
		files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			found = found || bytes.Contains(text, []byte("delegatetest.Run(t, "))
		}
		if !found {
			t.Errorf("%s: no test in %s calls delegatetest.Run", b.ID(), folder)
		}
	}
}
