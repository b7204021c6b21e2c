package cases

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestEvery(t *testing.T) {
	for _, c := range []struct {
		all  string
		n, i int
		want bool
	}{{"", 3, 0, true}, {"", 3, 1, false}, {"", 3, 6, true}, {"1", 3, 1, true}, {"", 1, 5, true}} {
		t.Setenv(envAll, c.all)
		if got := Every(c.n, c.i); got != c.want {
			t.Errorf("%s=%q: case %d of every %d: %v, want %v", envAll, c.all, c.i, c.n, got, c.want)
		}
	}
}

func TestOf(t *testing.T) {
	for all, want := range map[string]int{"": 2, "1": 5} {
		t.Setenv(envAll, all)
		if got := Of(2, 5); got != want {
			t.Errorf("%s=%q: %d cases, want %d", envAll, all, got, want)
		}
	}
}

// TestMakeCases requires that "make cases" runs the packages whose tests select cases.
func TestMakeCases(t *testing.T) {
	const root = "../.."
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(makefile), "CASEPACKAGES :=")
	list, _, _ = strings.Cut(strings.ReplaceAll(list, "\\\n", " "), "\n")
	users := 0
	err = filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if !bytes.Contains(text, []byte(`/internal/cases"`+"\n")) {
			return err
		}
		users++
		folder := "./" + filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), filepath.Clean(root)+string(filepath.Separator)))
		if !slices.ContainsFunc(strings.Fields(list), func(p string) bool {
			tree, all := strings.CutSuffix(p, "...")
			return p == folder || all && strings.HasPrefix(folder+"/", tree)
		}) {
			t.Errorf("%s: its package %s is not in CASEPACKAGES of the Makefile, %q", path, folder, list)
		}
		return err
	})
	if err != nil || users < 5 {
		t.Errorf("%d files select cases, %v", users, err)
	}
}
