package portable

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/kerneltest"
)

var set = kernels.NewSet(Ops())

func TestTable(t *testing.T) { kerneltest.Table(t, set) }

func TestCalls(t *testing.T) { kerneltest.Calls(t, set) }

// TestFamilies requires that the tests of each family have random calls: they depend on the name of the operator alone, and
// would be the same here.
func TestFamilies(t *testing.T) {
	table, err := os.ReadFile("portable.go")
	if err != nil {
		t.Fatal(err)
	}
	families := regexp.MustCompile(`\b(\w+)\.Ops\(\),`).FindAllSubmatch(table, -1)
	if len(families) < 10 {
		t.Fatalf("%d families", len(families))
	}
	for _, f := range families {
		calls := 0
		files, err := filepath.Glob(filepath.Join(string(f[1]), "*_test.go"))
		for _, path := range files {
			text, readErr := os.ReadFile(path)
			calls, err = calls+bytes.Count(text, []byte("kerneltest.Random(t, set,")), errors.Join(err, readErr)
		}
		if calls != 1 || err != nil {
			t.Errorf("%s: %d calls of kerneltest.Random, want 1, %v", f[1], calls, err)
		}
	}
}

func FuzzOps(f *testing.F) { kerneltest.Fuzz(f, set) }
