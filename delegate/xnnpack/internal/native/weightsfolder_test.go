//go:build unix

package native

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// openCached compiles a payload with a weights cache folder and runs it.
func openCached(t *testing.T, data []byte, folder string) (note string, packed int, outputs []float64) {
	t.Helper()
	return openWith(t, graph.WeightsCache{Folder: folder}, data, nil)
}

// openWith compiles a payload, calls between unless it is nil, and runs the unit.
func openWith(t *testing.T, cache graph.WeightsCache, data []byte, between func()) (note string, packed int, outputs []float64) {
	t.Helper()
	m, err := open(&delegate.Payload{Data: data}, cache, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	u, err := m.Unit(delegate.Instance{})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	if between != nil {
		between()
	}
	args := graphtest.NewMaker(1).Arguments(m.Graph)
	run(t, u, args)
	for _, a := range args[m.Graph.Inputs:] {
		outputs = append(outputs, graphtest.NumbersOf(a.Tensor)...)
	}
	return m.CacheNote, len(m.Weights.Blocks), outputs
}

// TestWeightsFile checks that weights are packed for the first opening only, packed again if the file
// is damaged, and that the results do not change.
func TestWeightsFile(t *testing.T) {
	xnntest.Library(t)
	folder := t.TempDir()
	for seed := range uint64(12) {
		data := graphtest.Encode(graphtest.RandomGraph(100+seed, 7))
		img, err := compile(data)
		if err != nil {
			continue
		}
		img.Close()
		note, _, want := openCached(t, data, folder)
		if !strings.HasPrefix(note, "kept in ") {
			t.Fatalf("graph %d, first opening: got note %q, want %q", seed, note, "kept in …")
		}
		check := func(what, prefix string, maxPacked int) {
			t.Helper()
			note, packed, got := openCached(t, data, folder)
			if !strings.HasPrefix(note, prefix) || packed > maxPacked {
				t.Errorf("graph %d, %s: got note %q, %d packed blocks, want %q, at most %d", seed, what, note, packed, prefix, maxPacked)
			}
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("graph %d, %s: element %d: got %v, want %v", seed, what, i, got[i], want[i])
				}
			}
		}
		path := strings.TrimPrefix(note, "kept in ")
		check("second opening", "from ", 0)
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []int{0, 9, 13, len(file) / 2, len(file) - 1} {
			damaged := append([]byte{}, file...)
			damaged[at] ^= 4
			os.WriteFile(path, damaged, 0o644)
			check("damaged", "kept in ", 1000)
		}
		os.WriteFile(path, file[:len(file)/2], 0o644)
		check("truncated", "kept in ", 1000)
	}
	if note, _, _ := openCached(t, graphtest.Encode(graphtest.ConvolutionGraph()), filepath.Join(folder, "new", "folder")); !strings.HasPrefix(note, "kept in ") {
		t.Errorf("missing folder: got note %q, want %q", note, "kept in …")
	}
	if note, _, _ := openCached(t, graphtest.Encode(graphtest.ConvolutionGraph()), filepath.Join(folder, ".key", "below")); !strings.HasPrefix(note, "not kept: ") {
		t.Errorf("folder below a file: got note %q, want %q", note, "not kept: …")
	}
}

// TestWeightsFileOfAnotherFolder copies a file to a folder with another key: it is not used.
func TestWeightsFileOfAnotherFolder(t *testing.T) {
	xnntest.Library(t)
	data, from, to := graphtest.Encode(graphtest.ConvolutionGraph()), t.TempDir(), t.TempDir()
	note, _, _ := openCached(t, data, from)
	file, err := os.ReadFile(strings.TrimPrefix(note, "kept in "))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(to, filepath.Base(note)), file, 0o644); err != nil {
		t.Fatal(err)
	}
	if note, _, _ := openCached(t, data, to); !strings.HasPrefix(note, "kept in ") {
		t.Errorf("file of another folder: got note %q, want %q", note, "kept in …")
	}
}

// kept opens a payload for the first time and returns the path of its weights file and the outputs.
func kept(t *testing.T, data []byte, folder string) (path string, outputs []float64) {
	t.Helper()
	note, _, outputs := openCached(t, data, folder)
	path, ok := strings.CutPrefix(note, "kept in ")
	if !ok {
		t.Fatal(note)
	}
	return path, outputs
}

// TestWeightsFileShrinks truncates the file of an open image: its run is not affected.
func TestWeightsFileShrinks(t *testing.T) {
	xnntest.Library(t)
	folder, data := t.TempDir(), graphtest.Encode(graphtest.ConvolutionGraph())
	path, want := kept(t, data, folder)
	note, packed, got := openWith(t, graph.WeightsCache{Folder: folder}, data, func() {
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
	})
	if !strings.HasPrefix(note, "from ") || packed != 0 || !slices.Equal(got, want) {
		t.Errorf("%q, %d packed, got %v, want %v", note, packed, got, want)
	}
}

// TestWeightsFileMapped checks that MapWeights maps the file.
func TestWeightsFileMapped(t *testing.T) {
	xnntest.Library(t)
	folder, data := t.TempDir(), graphtest.Encode(graphtest.ConvolutionGraph())
	path, want := kept(t, data, folder)
	note, packed, got := openWith(t, graph.WeightsCache{Folder: folder, Map: true}, data, func() {
		maps, err := os.ReadFile("/proc/self/maps")
		if err == nil && !strings.Contains(string(maps), path) {
			t.Errorf("%s is not mapped", path)
		}
	})
	if !strings.HasPrefix(note, "from ") || packed != 0 || !slices.Equal(got, want) {
		t.Errorf("%q, %d packed, got %v, want %v", note, packed, got, want)
	}
}

// TestWeightsFolderIsTrusted changes the folder, its key and a weights file: those that other users
// could have created or can change are not used, and the results are the same.
func TestWeightsFolderIsTrusted(t *testing.T) {
	xnntest.Library(t)
	data := graphtest.Encode(graphtest.ConvolutionGraph())
	replace := func(make func(path string) error) func(string) error {
		return func(path string) error { return errors.Join(os.RemoveAll(path), make(path)) }
	}
	chmod := func(mode fs.FileMode) func(string) error {
		return func(path string) error { return os.Chmod(path, mode) }
	}
	write := func(n int) func(string) error {
		return replace(func(path string) error { return os.WriteFile(path, make([]byte, n), 0o600) })
	}
	toLink := func(path string) error {
		return errors.Join(os.Rename(path, path+".moved"), os.Symlink(filepath.Base(path)+".moved", path))
	}
	stranger := func(path string) error { return os.Chown(path, 12345, 12345) }
	fifo := replace(func(path string) error { return syscall.Mkfifo(path, 0o600) })
	folder := replace(func(path string) error { return os.Mkdir(path, 0o700) })
	sparse := func(path string) error { return os.Truncate(path, 5<<30) }
	const notKept, repacked, used = "not kept: ", "kept in ", "from "
	for _, c := range []struct {
		what   string
		of     string // the folder itself, the key, or the file of weights
		change func(path string) error
		prefix string // prefix of the note
		reason string // part of the note
	}{
		{"others may write", "folder", chmod(0o777), notKept, "chmod 0755"},
		{"its group may write", "folder", chmod(0o775), notKept, "chmod 0755"},
		{"others may write, sticky", "folder", chmod(0o777 | fs.ModeSticky), used, ""},
		{"of another user", "folder", stranger, notKept, "belongs to user 12345"},
		{"others may read", "key", chmod(0o604), notKept, "chmod 0600"},
		{"its group may read", "key", chmod(0o640), notKept, "chmod 0600"},
		{"read only", "key", chmod(0o400), used, ""},
		{"of another user", "key", stranger, notKept, "belongs to user 12345"},
		{"symbolic link", "key", toLink, notKept, "symbolic link"},
		{"pipe", "key", fifo, notKept, "is a pipe"},
		{"folder", "key", folder, notKept, "is a directory"},
		{"empty", "key", write(0), notKept, "0 bytes, want 32"},
		{"short", "key", write(31), notKept, "31 bytes, want 32"},
		{"long", "key", write(33), notKept, "33 bytes, at most 32"},
		{"huge", "key", sparse, notKept, "at most 32"},
		{"replaced", "key", write(32), repacked, ""},
		{"absent", "key", os.Remove, repacked, ""},
		{"others may write", "file", chmod(0o646), repacked, "chmod 0644"},
		{"of another user", "file", stranger, repacked, "belongs to user 12345"},
		{"symbolic link", "file", toLink, repacked, "symbolic link"},
		{"pipe", "file", fifo, repacked, "is a pipe"},
		{"folder", "file", folder, notKept, ""},
		{"empty", "file", write(0), repacked, "damaged"},
		{"zeros", "file", write(1000), repacked, "damaged"},
		{"huge", "file", sparse, repacked, "5368709120 bytes, at most"},
	} {
		t.Run(c.of+" "+c.what, func(t *testing.T) {
			dir := t.TempDir()
			path, want := kept(t, data, dir)
			at := map[string]string{"folder": dir, "key": filepath.Join(dir, ".key"), "file": path}[c.of]
			if err := c.change(at); errors.Is(err, fs.ErrPermission) {
				t.Skipf("not allowed: %v", err)
			} else if err != nil {
				t.Fatal(err)
			}
			note, _, got := openCached(t, data, dir)
			if !strings.HasPrefix(note, c.prefix) || !strings.Contains(note, c.reason) {
				t.Errorf("got note %q, want %q with %q", note, c.prefix, c.reason)
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, ".etrun-*")); len(left) > 0 {
				t.Errorf("temporary files left: %v", left)
			}
		})
	}
}

// TestMaxPacked checks that the weights files of many graphs are not larger than MaxPacked.
func TestMaxPacked(t *testing.T) {
	xnntest.Library(t)
	folder, files := t.TempDir(), 0
	for seed := range uint64(60) {
		g := graphtest.RandomGraph(300+seed, 5)
		img, err := compile(graphtest.Encode(g))
		if err != nil {
			continue
		}
		most := maxPacked(img.Graph)
		img.Close()
		note, _, _ := openCached(t, graphtest.Encode(g), folder)
		path, ok := strings.CutPrefix(note, "kept in ")
		if !ok {
			continue // equal to an earlier one
		}
		files++
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > most {
			t.Errorf("graph %d: got %d bytes, want at most %d", seed, info.Size(), most)
		}
	}
	if files < 10 {
		t.Errorf("got %d files, want at least 10", files)
	}
}

// TestWeightsFileShared opens one payload in several goroutines concurrently: there is one file.
func TestWeightsFileShared(t *testing.T) {
	xnntest.Library(t)
	folder, data := t.TempDir(), graphtest.Encode(graphtest.ConvolutionGraph())
	var wait sync.WaitGroup
	for range 8 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			openCached(t, data, folder)
		}()
	}
	wait.Wait()
	files, err := filepath.Glob(filepath.Join(folder, "*.xnnweights"))
	if err != nil || len(files) != 1 {
		t.Errorf("got %d files, error %v, want 1 file", len(files), err)
	}
}
