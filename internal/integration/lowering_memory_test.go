package integration

import (
	"archive/zip"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate/ethosu"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// smallExcess is allowed for all programs, in bytes: the blocks of values end at cache lines, and nodes of
// the Go engine keep tables of offsets.
const smallExcess = 4 << 10

// libraryExcess is allowed for programs that the library runs. It allocates the values between nodes
// itself, so that they share no memory with the arena, and its operators pack operands in each run.
var libraryExcess = map[string]int64{
	"seeds.zip/seed_c_scalar/sdpa_portable.pte": 20 << 10,
	"fresh/attention_cnn/portable.pte":          108 << 10,
	"views/wide_view.pte":                       1 << 10,
}

// TestLoweredMemory compares the memory of programs with and without lowering, for both engines.
// The lowered program needs at most as much, apart from packed weights, smallExcess and, if the
// library runs it, libraryExcess and the library's tables and descriptors, which nodes do not share.
// All regions of testdata are lowered. If the variable CORPUS names a folder, its models are added with
// the regions that pay off; those that the library runs may need a quarter more.
func TestLoweredMemory(t *testing.T) {
	for _, engine := range []xnnpack.Engine{xnnpack.EngineGo, xnnpack.EngineNative} {
		t.Run(string(engine), func(t *testing.T) {
			if engine == xnnpack.EngineNative {
				xnntest.Library(t)
			}
			lowered := 0
			for name, data := range portablePrograms(t) {
				lowered += checkLoweredMemory(t, name, data, engine, 0, etrun.WithLowering(etrun.LowerAll))
			}
			if lowered < 20 {
				t.Errorf("%d methods were lowered, want at least 20", lowered)
			}
			share := int64(0)
			if engine == xnnpack.EngineNative {
				share = 4
			}
			for _, name := range corpusModels(t) {
				data, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				name = path.Join(strings.Split(filepath.ToSlash(name), "/")[strings.Count(filepath.ToSlash(name), "/")-2:]...)
				checkLoweredMemory(t, name, data, engine, share, etrun.WithLowering(etrun.LowerAuto))
			}
		})
	}
}

// checkLoweredMemory returns the number of methods that are lowered. A share of n allows an n-th of
// the memory without lowering more.
func checkLoweredMemory(t *testing.T, name string, data []byte, engine xnnpack.Engine, share int64, lowering ...etrun.Option) (lowered int) {
	plain, now := methodMemories(t, name, data, engine, etrun.WithLowering(etrun.LowerRewrite)),
		methodMemories(t, name, data, engine, lowering...)
	for i := range plain {
		if !now[i].lowered {
			continue
		}
		lowered++
		want := plain[i].sum() - plain[i].packed + now[i].packed + smallExcess
		if engine == xnnpack.EngineNative {
			want += now[i].tables + libraryExcess[name]
		}
		if share > 0 {
			want += plain[i].sum() / share
		}
		if now[i].sum() > want {
			t.Errorf("%s: lowered: %v, %d more than allowed\nwithout: %v", name, now[i], now[i].sum()-want, plain[i])
		}
	}
	return lowered
}

// methodMemory is the memory of a method after a run, in bytes.
type methodMemory struct {
	lowered  bool
	planned  int64 // arenas and state
	folded   int64 // constants computed at load
	packed   int64
	scratch  int64 // working memory of operators and delegates
	tables   int64 // that of delegates that they do not share, as they declare it
	released int64 // of constants that nothing reads any more
}

func (m methodMemory) sum() int64 {
	return m.planned + m.folded + m.packed + m.scratch - m.released
}

func (m methodMemory) String() string {
	return fmt.Sprintf("%d bytes: planned %d, folded %d, packed %d, scratch %d, tables %d, released %d", m.sum(),
		m.planned, m.folded, m.packed, m.scratch, m.tables, m.released)
}

// methodMemories runs each method of a program once.
func methodMemories(t *testing.T, name string, data []byte, engine xnnpack.Engine, options ...etrun.Option) (list []methodMemory) {
	t.Helper()
	options = append([]etrun.Option{etrun.WithDelegates(xnnpack.Backend{Engine: engine}, ethosu.Backend{}), etrun.WithThreads(1)}, options...)
	p, err := etrun.Parse(data, options...)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	defer p.Close()
	for _, method := range p.MethodNames() {
		m, err := p.Load(context.Background(), method)
		if err != nil {
			list = append(list, methodMemory{}) // needs other files
			continue
		}
		runOnZeros(m)
		report := m.Report()
		r := methodMemory{lowered: report.Lowered != nil && report.Lowered.Accepted() > 0, planned: report.Plan.Bytes(),
			scratch: m.Memory().Scratch, released: report.ReleasedBytes}
		for i := range report.Folded {
			r.folded += report.Folded[i].Bytes
		}
		for i := range report.Rewritten {
			r.folded += report.Rewritten[i].Bytes
		}
		for _, d := range m.Delegates() {
			r.packed, r.tables = r.packed+d.PackedBytes, r.tables+d.Scratch-d.Shared
		}
		list = append(list, r)
		m.Close()
	}
	return list
}

// runOnZeros runs a method. Not all run on zeros; they stop at the same instruction.
func runOnZeros(m *etrun.Method) {
	for i, in := range m.Meta().Inputs {
		if in.Kind == tensor.KindTensor {
			m.SetInput(i, tensor.New(in.DType, in.Sizes...))
		}
	}
	m.Execute(context.Background())
}

// portablePrograms returns programs of testdata with operators.
func portablePrograms(t *testing.T) map[string][]byte {
	t.Helper()
	list := make(map[string][]byte)
	for _, name := range []string{testdata("lowering/seeds.zip"), testdata("lowering/delegates.zip")} {
		archive, err := zip.OpenReader(name)
		if err != nil {
			t.Fatal(err)
		}
		defer archive.Close()
		for _, f := range archive.File {
			data, err := fs.ReadFile(archive, f.Name)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(f.Name, ".pte") {
				list[path.Join(path.Base(name), f.Name)] = data
			}
		}
	}
	files, err := filepath.Glob(testdata("*/*.pte"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		list[path.Join(path.Base(path.Dir(filepath.ToSlash(name))), filepath.Base(name))] = data
	}
	return list
}

// corpusModels returns the paths of models below the folder that the variable CORPUS names.
func corpusModels(t *testing.T) (list []string) {
	t.Helper()
	for _, kind := range []string{"models", "fresh"} {
		found, err := filepath.Glob(filepath.Join(os.Getenv("CORPUS"), kind, "*", "portable*.pte"))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, found...)
	}
	return list
}
