package etrun_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/delegate/xnnpack"
)

// TestWarnings checks that unused backends and data are reported, and nothing else.
func TestWarnings(t *testing.T) {
	xnntest.Library(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	own := etrun.WithDelegates(all.Backends()...)
	data := etrun.WithDataFiles(externalData)
	for name, c := range map[string]struct {
		program string
		options []etrun.Option
		want    []delegate.WarningClass
	}{
		"backends of the build": {convProgram, []etrun.Option{own}, nil},
		"a backend with fields": {convProgram, []etrun.Option{own, etrun.WithLowering(etrun.LowerRewrite),
			etrun.WithDelegates(xnnpack.Backend{Engine: xnnpack.EngineGo})}, []delegate.WarningClass{delegate.WarnBackend}},
		"one for lowering":        {convProgram, []etrun.Option{own, etrun.WithDelegates(xnnpack.Backend{Engine: xnnpack.EngineGo})}, nil},
		"one that is asked for":   {"testdata/pte/named_data.pte", []etrun.Option{etrun.WithDelegates(xnnpack.Backend{Engine: xnnpack.EngineGo})}, nil},
		"data":                    {externalProgram, []etrun.Option{data}, nil},
		"data of another program": {convProgram, []etrun.Option{data}, []delegate.WarningClass{delegate.WarnData}},
		"data and a delegate":     {"testdata/pte/named_data.pte", []etrun.Option{own, data}, []delegate.WarningClass{delegate.WarnData}},
		"no folder": {"testdata/pte/named_data.pte", []etrun.Option{etrun.WithDelegates(xnnpack.Backend{Engine: xnnpack.EngineNative, Library: xnntest.Path(),
			WeightsCache: filepath.Join(file, "x")})},
			[]delegate.WarningClass{delegate.WarnCache}},
	} {
		var got []delegate.WarningClass
		warnings := load(t, c.program, c.options...).Program().Warnings()
		for _, w := range warnings {
			got = append(got, w.Class)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, warnings, c.want)
		}
	}
}

// TestWarningsWaitForDelegates checks that data is not reported as unused before all delegates are
// compiled.
func TestWarningsWaitForDelegates(t *testing.T) {
	inGo := etrun.WithDelegates(xnnpack.Backend{Engine: xnnpack.EngineGo}) // without the library there would be a warning about it, too
	p, err := etrun.Open("testdata/pte/named_data.pte", inGo, etrun.WithData(etrun.File(externalData)))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if w := p.Warnings(); len(w) > 0 {
		t.Errorf("before a load: %q", w)
	}
	m, err := p.Load(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if w := p.Warnings(); len(w) != 1 || !strings.Contains(w[0].Text, externalData) {
		t.Errorf("after it: %q", w)
	}
}
