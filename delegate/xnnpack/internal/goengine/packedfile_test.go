//go:build unix

package goengine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/internal/simd"
)

// packedFile returns the only file of panels in a folder.
func packedFile(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.gopacked"))
	if err != nil || len(files) != 1 {
		t.Fatalf("got files %v, error %v, want one file", files, err)
	}
	return files[0]
}

// TestPackedFile checks for all kinds of filters that the first load writes a file and later ones use it, read or mapped, with
// the same results as without a cache; and that a mapped load packs no panel: changed panels change the results.
func TestPackedFile(t *testing.T) {
	for name, g := range largeFilters() {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			_, want := openPacked(t, g, graph.WeightsCache{})
			for i, c := range []struct {
				mapped bool
				prefix string
			}{{true, "kept in "}, {false, "from "}, {true, "from "}} {
				m, got := openPacked(t, g, graph.WeightsCache{Folder: folder, Map: c.mapped})
				if !strings.HasPrefix(m.CacheNote, c.prefix) || !sameNumbers(got, want) {
					t.Errorf("load %d: %q, want %q; same results: %v", i, m.CacheNote, c.prefix, sameNumbers(got, want))
				}
			}
			path := packedFile(t, folder)
			file, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			clear(file[64:])
			seal(file)
			replaceFile(t, path, file)
			m, got := openPacked(t, g, graph.WeightsCache{Folder: folder, Map: true})
			if sameNumbers(got, want) || !strings.HasPrefix(m.CacheNote, "from ") {
				t.Errorf("%q: zeros in the file change no result: the filter is packed again", m.CacheNote)
			}
		})
	}
}

// seal writes the checksum of a file.
func seal(file []byte) { binary.LittleEndian.PutUint32(file[8:], graph.Checksum(file[12:])) }

// replaceFile replaces a file that may be mapped.
func replaceFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := errors.Join(os.Remove(path), os.WriteFile(path, data, 0o644)); err != nil {
		t.Fatal(err)
	}
}

// TestPackedFileMapped checks that a mapped load has the panels in the file's pages, releases the filters, and allocates less than
// they take.
func TestPackedFileMapped(t *testing.T) {
	for name, g := range largeFilters() {
		folder, c := t.TempDir(), graph.WeightsCache{Map: true}
		c.Folder = folder
		openPacked(t, g, c)
		path, released := packedFile(t, folder), 0
		own := compilation(t, g)
		own.Region, own.Release = true, func([]byte) bool { released++; return true }
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m, err := NewImage(t.Context(), own, c)
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<18 {
			t.Errorf("%s: the load allocates %d bytes", name, n)
		}
		if released != 1 {
			t.Errorf("%s: %d filters are released, want one", name, released)
		}
		if maps, err := os.ReadFile("/proc/self/maps"); err == nil && !strings.Contains(string(maps), path) {
			t.Errorf("%s: %s is not mapped", name, path)
		}
		m.Close()
	}
}

// TestPackedFileOfOtherLayouts checks that files of another version of panels, of another vector level, of another filter and of
// another folder are not used.
func TestPackedFileOfOtherLayouts(t *testing.T) {
	g, folder := largeFilters()["bytes"], t.TempDir()
	c := graph.WeightsCache{Folder: folder}
	miss := func(what string, g *graph.Graph, c graph.WeightsCache) {
		t.Helper()
		if m, _ := openPacked(t, g, c); !strings.HasPrefix(m.CacheNote, "kept in ") || strings.Contains(m.CacheNote, "not used") {
			t.Errorf("%s: %q, want a new file", what, m.CacheNote)
		}
	}
	miss("first load", g, c)
	restore := setPackedVersion(packedVersion + 1)
	miss("another version", g, c)
	restore()
	other := largeFilters()["bytes"]
	for v := range other.Values {
		if x := &other.Values[v]; len(x.Data) > 1<<16 {
			x.Data[5000] ^= 1
		}
	}
	miss("another filter", other, c)
	copied := t.TempDir()
	for _, path := range globbed(t, folder) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(copied, filepath.Base(path)), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	miss("another folder", g, graph.WeightsCache{Folder: copied})
	if m, _ := openPacked(t, g, c); !strings.HasPrefix(m.CacheNote, "from ") {
		t.Errorf("the first file is no longer used: %q", m.CacheNote)
	}
}

func globbed(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.gopacked"))
	if err != nil || len(files) == 0 {
		t.Fatalf("got files %v, error %v", files, err)
	}
	return files
}

// TestPackedFileDamaged checks that every kind of damage is found, reported and repaired, with the same results.
func TestPackedFileDamaged(t *testing.T) {
	g, folder := largeFilters()["4 bits"], t.TempDir()
	c := graph.WeightsCache{Folder: folder, Map: true}
	_, want := openPacked(t, g, c)
	path := packedFile(t, folder)
	intact, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	type damage struct {
		what   string
		change func(b []byte) []byte
	}
	list := []damage{
		{"empty", func(b []byte) []byte { return nil }},
		{"only the magic", func(b []byte) []byte { return b[:8] }},
		{"only the header", func(b []byte) []byte { return b[:64] }},
		{"short", func(b []byte) []byte { return b[:len(b)-1] }},
		{"half", func(b []byte) []byte { return b[:len(b)/2] }},
		{"long", func(b []byte) []byte { return append(b, 0) }},
		{"long, sealed", func(b []byte) []byte { b = append(b, make([]byte, 64)...); seal(b); return b }},
		{"short, sealed", func(b []byte) []byte { b = b[:len(b)-64]; seal(b); return b }},
		{"zeros", func(b []byte) []byte { clear(b); return b }},
		{"another size, sealed", func(b []byte) []byte { b[16] ^= 1; seal(b); return b }},
		{"a huge size, sealed", func(b []byte) []byte { b[23] = 0xff; seal(b); return b }},
	}
	for _, at := range []int{0, 7, 8, 11, 12, 16, 40, 63, 64, len(intact) / 2, len(intact) - 1} {
		list = append(list, damage{fmt.Sprintf("a bit of byte %d", at), func(b []byte) []byte { b[at] ^= 16; return b }})
	}
	for _, d := range list {
		replaceFile(t, path, d.change(bytes.Clone(intact)))
		m, got := openPacked(t, g, c)
		if !strings.HasPrefix(m.CacheNote, "kept in ") || !strings.Contains(m.CacheNote, "not used") || !sameNumbers(got, want) {
			t.Errorf("%s: %q, same results: %v", d.what, m.CacheNote, sameNumbers(got, want))
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, intact) {
			t.Errorf("%s: the file is not written again: %v", d.what, err)
		}
	}
}

// TestPackedFileFolders checks folders that are read only, unusable or not trusted.
func TestPackedFileFolders(t *testing.T) {
	g := largeFilters()["bytes"]
	_, want := openPacked(t, g, graph.WeightsCache{})
	folder := t.TempDir()
	openPacked(t, g, graph.WeightsCache{Folder: folder})
	check := func(what, folder, prefix string) {
		t.Helper()
		m, got := openPacked(t, g, graph.WeightsCache{Folder: folder, Map: true})
		if !strings.HasPrefix(m.CacheNote, prefix) || !sameNumbers(got, want) {
			t.Errorf("%s: %q, want %q; same results: %v", what, m.CacheNote, prefix, sameNumbers(got, want))
		}
	}
	if err := os.Chmod(folder, 0o555); err != nil {
		t.Fatal(err)
	}
	check("read only", folder, "from ")
	if os.Getuid() > 0 { // root writes all the same
		restore := setPackedVersion(packedVersion + 1)
		check("read only, without the file", folder, graph.NotKept)
		restore()
	}
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	check("others may write", folder, graph.NotKept)
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	check("below a file", filepath.Join(folder, ".key", "below"), graph.NotKept)
	if err := os.Chmod(packedFile(t, folder), 0o646); err != nil {
		t.Fatal(err)
	}
	check("others may write the file", folder, "kept in ")
}

// envPacked names the folder of a process of TestPackedFileShared.
const envPacked = "ETRUN_TEST_PACKED"

// TestPackedFileShared loads a graph in several processes at once, two of them at another vector level: all have the results
// of their level, and there is a file for each level.
func TestPackedFileShared(t *testing.T) {
	if folder := os.Getenv(envPacked); folder != "" {
		_, got := openPacked(t, largeFilters()["a convolution of bytes"], graph.WeightsCache{Folder: folder, Map: true})
		fmt.Printf("packed: %s %x\n", simd.PackedLayout(), sha256.Sum256(fmt.Append(nil, got)))
		return
	}
	folder := t.TempDir()
	var all []*exec.Cmd
	outputs := make([]bytes.Buffer, 6)
	for i := range outputs {
		c := exec.Command(os.Args[0], "-test.run", "^TestPackedFileShared$")
		c.Env = append(os.Environ(), envPacked+"="+folder)
		if i >= 4 {
			c.Env = append(c.Env, "GODEBUG=cpu.avx2=off,cpu.avx512f=off")
		}
		c.Stdout, c.Stderr = &outputs[i], &outputs[i]
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	results := make(map[string]bool)
	for i, c := range all {
		if err := c.Wait(); err != nil {
			t.Fatalf("%v: %s", err, outputs[i].String())
		}
		line, _, ok := strings.Cut(outputs[i].String(), "\n")
		if !ok || !strings.HasPrefix(line, "packed: ") {
			t.Fatalf("got %q", outputs[i].String())
		}
		results[line] = true
	}
	if files := globbed(t, folder); len(files) != len(results) {
		t.Errorf("%d files, want one for each of %v", len(files), results)
	}
}

// TestPackedFileStops checks that a load with a cache ends with its context.
func TestPackedFileStops(t *testing.T) {
	reason := errors.New("no longer wanted")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(reason)
	for name, g := range largeFilters() {
		if m, err := NewImage(ctx, compilation(t, g), graph.WeightsCache{Folder: t.TempDir()}); m != nil || !errors.Is(err, reason) {
			t.Errorf("%s: got %v and %v, want %v", name, m, err, reason)
		}
	}
}

// TestSmallFiltersAreNotStored checks that no file is written for filters that are packed faster than a file is read.
func TestSmallFiltersAreNotStored(t *testing.T) {
	folder := t.TempDir()
	if m, _ := openPacked(t, graphtest.ConvolutionGraph(), graph.WeightsCache{Folder: folder}); m.CacheNote != "" {
		t.Errorf("got note %q", m.CacheNote)
	}
	if files, _ := filepath.Glob(filepath.Join(folder, "*")); len(files) > 0 {
		t.Errorf("got files %v", files)
	}
}

// TestPackedFileOfRandomGraphs checks that graphs of random nodes compute the same with their panels from a file.
func TestPackedFileOfRandomGraphs(t *testing.T) {
	defer setPackedLeast(1)()
	folder, used := t.TempDir(), 0
	for seed := range uint64(150) {
		g := graphtest.RandomGraph(500+seed, 6)
		if _, err := g.Declared(); err != nil {
			continue
		}
		compiled := func(c graph.WeightsCache) (*Image, []float64) {
			m, err := NewImage(t.Context(), compilation(t, graphtest.RandomGraph(500+seed, 6)), c)
			if err != nil {
				return nil, nil
			}
			defer m.Close()
			return m, outputsOf(t, m)
		}
		first, want := compiled(graph.WeightsCache{})
		for range 2 {
			m, got := compiled(graph.WeightsCache{Folder: folder, Map: seed%2 == 0})
			if (m == nil) != (first == nil) || !sameNumbers(got, want) {
				t.Fatalf("graph %d: got %v, want %v", seed, got, want)
			}
			if m != nil && strings.HasPrefix(m.CacheNote, "from ") {
				used++
			}
		}
	}
	if used < 20 {
		t.Errorf("%d files were used, want at least 20", used)
	}
}
