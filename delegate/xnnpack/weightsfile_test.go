package xnnpack

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
)

// openCached compiles a payload with a weights folder, and runs it.
func openCached(t *testing.T, data []byte, folder string) (note string, packed int, outputs []float64) {
	t.Helper()
	b := Backend{Engine: EngineNative, Library: xnntest.Path(), WeightsCache: folder}
	img, err := b.Compile(context.Background(), &delegate.Payload{Data: data})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	m := img.(*image)
	u, err := img.Unit(delegate.Instance{})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	args := newMaker(1).arguments(m.graph)
	mustExecute(t, u, args)
	for _, a := range args[m.graph.Inputs:] {
		outputs = append(outputs, numbersOf(a.Tensor)...)
	}
	return m.cacheNote, len(m.weights.blocks), outputs
}

// TestWeightsFile packs on the first opening only, and the results stay the same,
// whatever becomes of the file.
func TestWeightsFile(t *testing.T) {
	xnntest.Library(t)
	folder := t.TempDir()
	for seed := range uint64(12) {
		data := encode(randomGraph(100+seed, 7))
		img, err := compile(t, data, EngineNative)
		if err != nil {
			continue
		}
		img.Close()
		note, _, want := openCached(t, data, folder)
		if !strings.HasPrefix(note, "kept in ") {
			t.Fatalf("graph %d, first opening: %q", seed, note)
		}
		check := func(what, prefix string, maxPacked int) {
			t.Helper()
			note, packed, got := openCached(t, data, folder)
			if !strings.HasPrefix(note, prefix) || packed > maxPacked {
				t.Errorf("graph %d, %s: %q, %d blocks packed", seed, what, note, packed)
			}
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("graph %d, %s: element %d is %v, want %v", seed, what, i, got[i], want[i])
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
		check("cut", "kept in ", 1000)
	}
	if note, _, _ := openCached(t, encode(convolutionGraph()), filepath.Join(folder, "new", "folder")); !strings.HasPrefix(note, "kept in ") {
		t.Errorf("missing folder: %q", note)
	}
	if note, _, _ := openCached(t, encode(convolutionGraph()), filepath.Join(folder, folderKey, "below")); !strings.HasPrefix(note, "not kept: ") {
		t.Errorf("a folder below a file: %q", note)
	}
}

// TestWeightsFileOfAnotherFolder carries a file to a folder with a secret of its own.
func TestWeightsFileOfAnotherFolder(t *testing.T) {
	xnntest.Library(t)
	data, from, to := encode(convolutionGraph()), t.TempDir(), t.TempDir()
	note, _, _ := openCached(t, data, from)
	file, err := os.ReadFile(strings.TrimPrefix(note, "kept in "))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(to, filepath.Base(note)), file, 0o644); err != nil {
		t.Fatal(err)
	}
	if note, _, _ := openCached(t, data, to); !strings.HasPrefix(note, "kept in ") {
		t.Errorf("a stranger's file was used: %q", note)
	}
}

// TestWeightsFileShared opens one payload in many goroutines at once.
func TestWeightsFileShared(t *testing.T) {
	xnntest.Library(t)
	folder, data := t.TempDir(), encode(convolutionGraph())
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
		t.Errorf("%d files, want 1", len(files))
	}
}

// FuzzWeightsFile wants an error or entries inside the file.
func FuzzWeightsFile(f *testing.F) {
	f.Add([]byte(weightsMagic+"\x00\x00\x00\x00\x01\x00\x00\x00"+strings.Repeat("\x00", 200)), true)
	g := convolutionGraph()
	f.Fuzz(func(t *testing.T, data []byte, sum bool) {
		if len(data) < weightsHeader {
			return
		}
		if sum {
			sealWeights(data)
		}
		entries, err := parseWeights(data, g)
		for _, e := range entries {
			if err == nil && len(e.data) == 0 {
				t.Fatal("empty entry")
			}
		}
	})
}
