package openfile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestWithin opens files of a folder, also by links in it, and none outside of it.
func TestWithin(t *testing.T) {
	folder, away := t.TempDir(), t.TempDir()
	linked := filepath.Join(away, "linked")
	in := func(name string) string { return filepath.Join(folder, name) }
	err := errors.Join(os.Mkdir(in("sub"), 0o700), os.WriteFile(in("sub/a"), []byte("in"), 0o600), os.WriteFile(in("b"), []byte("in"), 0o600),
		os.WriteFile(filepath.Join(away, "a"), []byte("out"), 0o600), os.Symlink(folder, linked), os.Symlink("sub/a", in("relative")),
		os.Symlink(in("sub/a"), in("absolute")), os.Symlink(filepath.Join(away, "a"), in("out")), os.Symlink(away, in("folder")),
		os.Symlink("out", in("chain")), os.Symlink("../"+filepath.Base(away)+"/a", in("dots")))
	if err != nil {
		t.Fatal(err)
	}
	for path, ok := range map[string]bool{in("b"): true, in("sub/a"): true, in("sub/../b"): true, in("relative"): true, in("absolute"): true,
		in("out"): false, in("folder/a"): false, in("chain"): false, in("dots"): false, filepath.Join(away, "a"): false,
		filepath.Join(linked, "b"): true, filepath.Join(linked, "out"): false, filepath.Join(folder, "..", filepath.Base(away), "a"): false} {
		for _, root := range []string{folder, linked} {
			data, err := ReadFile(Within(t.Context(), root), path, Rules{})
			if (err == nil) != ok || ok && string(data) != "in" || !ok && !errors.Is(err, ErrOutside) {
				t.Errorf("%s in %s: %q, %v", path, root, data, err)
			}
		}
		if _, err := ReadFile(Within(Within(t.Context(), folder), ""), path, Rules{}); err != nil {
			t.Errorf("%s without a folder: %v", path, err)
		}
	}
}

// TestWithinChangingLinks reads a file while it becomes a link out of the folder and back: what is outside is never read.
func TestWithinChangingLinks(t *testing.T) {
	folder, away := t.TempDir(), filepath.Join(t.TempDir(), "a")
	path, next := filepath.Join(folder, "a"), filepath.Join(folder, "next")
	if err := errors.Join(os.WriteFile(path, []byte("in"), 0o600), os.WriteFile(away, []byte("out"), 0o600)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		for ctx.Err() == nil {
			err := errors.Join(os.Symlink(away, next), os.Rename(next, path), os.WriteFile(next, []byte("in"), 0o600), os.Rename(next, path))
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	read, refused := 0, 0
	for i := 0; i < 20_000 && (i < 2000 || read == 0 || refused == 0); i++ {
		data, err := ReadFile(Within(ctx, folder), path, Rules{})
		switch {
		case err != nil && !errors.Is(err, ErrOutside):
			t.Fatal(err)
		case err != nil:
			refused++
		case string(data) == "out":
			t.Fatal("what is outside was read")
		default:
			read++
		}
	}
	cancel()
	all.Wait()
	t.Logf("%d read, %d refused", read, refused)
}
