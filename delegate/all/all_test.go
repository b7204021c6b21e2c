package all

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"testing"
)

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
