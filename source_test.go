package etrun_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/etrun-go/etrun"
)

const (
	externalProgram = "testdata/pte/external_weights.pte"
	externalData    = "testdata/pte/external_weights.ptd"
)

func readTestFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sourcesOf returns a file as every kind of source.
func sourcesOf(t *testing.T, path string) map[string]etrun.Source {
	data := readTestFile(t, path)
	return map[string]etrun.Source{
		"file":      etrun.File(path),
		"folder":    etrun.FS(os.DirFS("."), path),
		"map":       etrun.FS(fstest.MapFS{"x": {Data: data}}, "x"),
		"bytes":     etrun.Bytes("x", data),
		"reader at": etrun.ReaderAt("x", bytes.NewReader(data), int64(len(data))),
	}
}

// TestSources opens programs and data from every source.
func TestSources(t *testing.T) {
	var want []float32
	programs, data := sourcesOf(t, externalProgram), sourcesOf(t, externalData)
	for name, src := range programs {
		for dataName, weights := range data {
			p, err := etrun.OpenSource(t.Context(), src, etrun.WithData(weights))
			if err != nil {
				t.Fatalf("%s, %s: %v", name, dataName, err)
			}
			m, err := p.Load(t.Context(), "")
			if err != nil {
				t.Fatalf("%s, %s: %v", name, dataName, err)
			}
			got, err := etrun.Run[float32](t.Context(), m, []float32{1, 2, 3, 4, 5, 6, 7, 8})
			if want == nil {
				want = slices.Clone(got)
			}
			if err != nil || len(got) != 6 || !slices.Equal(got, want) {
				t.Errorf("%s, %s: got %v, %v, want %v", name, dataName, got, err, want)
			}
			m.Close()
			p.Close()
		}
	}
}

// TestSourcesThatFail checks that errors of a source name it once.
func TestSourcesThatFail(t *testing.T) {
	data := readTestFile(t, externalProgram)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	small := etrun.WithLimits(etrun.Limits{FileBytes: 100})
	for name, c := range map[string]struct {
		src    etrun.Source
		option etrun.Option
		ctx    context.Context
		want   error
	}{
		"none":           {want: etrun.ErrInput},
		"no file":        {src: etrun.FS(fstest.MapFS{}, "x.pte"), want: fs.ErrNotExist},
		"a folder":       {src: etrun.FS(os.DirFS("."), "testdata"), want: nil},
		"few bytes":      {src: etrun.ReaderAt("x.pte", bytes.NewReader(data), int64(len(data)+1)), want: nil},
		"no size":        {src: etrun.ReaderAt("x.pte", bytes.NewReader(data), -1), want: etrun.ErrMemory},
		"large file":     {src: etrun.File(externalProgram), option: small, want: etrun.ErrMemory},
		"large in FS":    {src: etrun.FS(os.DirFS("."), externalProgram), option: small, want: etrun.ErrMemory},
		"large bytes":    {src: etrun.Bytes("x.pte", data), option: small, want: etrun.ErrMemory},
		"large reader":   {src: etrun.ReaderAt("x.pte", bytes.NewReader(data), int64(len(data))), option: small, want: etrun.ErrMemory},
		"damaged":        {src: etrun.Bytes("x.pte", data[:200]), want: etrun.ErrFormat},
		"damaged weight": {src: etrun.Bytes("y.pte", data), option: etrun.WithData(etrun.Bytes("x.pte", data)), want: etrun.ErrFormat},
		"cancelled":      {src: etrun.ReaderAt("x.pte", bytes.NewReader(data), int64(len(data))), ctx: cancelled, want: context.Canceled},
	} {
		options := []etrun.Option{}
		if c.option != nil {
			options = append(options, c.option)
		}
		if c.ctx == nil {
			c.ctx = t.Context()
		}
		p, err := etrun.OpenSource(c.ctx, c.src, options...)
		if err == nil || p != nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
			continue
		}
		if n := strings.Count(err.Error(), "x.pte"); name != "none" && name != "a folder" && !strings.HasPrefix(name, "large") && n != 1 {
			t.Errorf("%s: the source is named %d times: %v", name, n, err)
		}
	}
}

// TestParseCopies checks that the caller may change its bytes after Parse.
func TestParseCopies(t *testing.T) {
	data := readTestFile(t, convProgram)
	p, err := etrun.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	clear(data)
	m, err := p.Load(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	setOnes(t, m)
	if err := m.Execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	same := load(t, convProgram)
	setOnes(t, same)
	if err := same.Execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := outputTensor(m, 0).Data, outputTensor(same, 0).Data; !bytes.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
}

// TestFileCheck checks that WithFileCheck gets the bytes of each file before they are parsed, from every
// kind of source, and that its error ends the opening.
func TestFileCheck(t *testing.T) {
	const path, weights = "testdata/pte/external_weights.pte", "testdata/pte/external_weights.ptd"
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(weights)
	if err != nil {
		t.Fatal(err)
	}
	broken := append(bytes.Clone(program[:64]), make([]byte, 64)...)
	refused := errors.New("refused")
	for _, c := range []struct {
		name    string
		source  etrun.Source
		options []etrun.Option
	}{
		{"file", etrun.File(path), nil}, {"mapped", etrun.File(path), []etrun.Option{etrun.WithMmap()}},
		{"bytes", etrun.Bytes(path, program), nil},
		{"FS", etrun.FS(os.DirFS("."), path), nil}, {"reader", etrun.ReaderAt(path, bytes.NewReader(program), int64(len(program))), nil},
	} {
		var names []string
		check := func(name string, b []byte) error {
			names = append(names, name)
			if want := map[string][]byte{path: program, weights: data}[name]; !bytes.Equal(b, want) {
				t.Errorf("%s: %s: %d other bytes", c.name, name, len(b))
			}
			return nil
		}
		p, err := etrun.OpenSource(t.Context(), c.source, append(c.options, etrun.WithDataFiles(weights), etrun.WithFileCheck(check))...)
		if err != nil || !slices.Equal(names, []string{path, weights}) {
			t.Fatalf("%s: checked %q, %v", c.name, names, err)
		}
		p.Close()
		for _, last := range []string{path, weights} {
			check := func(name string, _ []byte) error {
				if name == last {
					return refused
				}
				return nil
			}
			if _, err := etrun.OpenSource(t.Context(), c.source, append(c.options, etrun.WithDataFiles(weights),
				etrun.WithFileCheck(check))...); !errors.Is(err, refused) {
				t.Errorf("%s: %s is refused, got %v", c.name, last, err)
			}
		}
	}
	_, err = etrun.OpenSource(t.Context(), etrun.Bytes("x", broken), etrun.WithFileCheck(func(string, []byte) error { return refused }))
	if !errors.Is(err, refused) {
		t.Errorf("a broken file is parsed before it is checked: %v", err)
	}
}
