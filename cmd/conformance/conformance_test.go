package main

import (
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/etrun-go/etrun"
)

func TestOperators(t *testing.T) {
	cases, err := load("../../testdata/ops")
	if err != nil {
		t.Fatal(err)
	}
	r := runner{lowering: etrun.LowerOff, engine: "go", limit: time.Minute}
	for _, c := range cases {
		if _, err := r.one(c); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if len(cases) < 1000 {
		t.Errorf("%d cases, want all that testdata holds", len(cases))
	}
}

func TestWrongAnswersFail(t *testing.T) {
	cases, err := load("../../testdata/ops")
	if err != nil {
		t.Fatal(err)
	}
	r := runner{lowering: etrun.LowerOff, engine: "go", limit: time.Minute}
	wanted := regexp.MustCompile(`aten_(add|permute_copy|argmax)_(out|int_out)/`)
	tried := 0
	for _, c := range cases {
		if !wanted.MatchString(c.name) || c.refuse || c.mayRefuse {
			continue
		}
		damaged, ok := damage(t, c)
		if !ok {
			continue
		}
		tried++
		if _, err := r.one(damaged); err == nil {
			t.Errorf("%s: passes with another element wanted", c.name)
		}
	}
	if tried < 5 {
		t.Errorf("%d cases tried", tried)
	}
}

// damage changes the last expected element of a case; ok is false if it expects none.
func damage(t *testing.T, c *testCase) (damaged *testCase, ok bool) {
	v := c.calls[0].Outputs[0]
	if v.Data == "" || v.Reference != "" || v.Compare == "shape" {
		return nil, false
	}
	files := fstest.MapFS{}
	for _, name := range []string{c.program, v.Data} {
		files[name] = &fstest.MapFile{Data: readFile(t, c, name)}
	}
	for _, in := range c.calls[0].Inputs {
		if in.Data != "" {
			files[in.Data] = &fstest.MapFile{Data: readFile(t, c, in.Data)}
		}
	}
	b := files[v.Data].Data
	if len(b) == 0 {
		return nil, false
	}
	b[len(b)-1] ^= 0x40 // of the last element the byte that counts most
	d := *c
	d.files, d.calls = files, c.calls[:1]
	return &d, true
}

func readFile(t *testing.T, c *testCase, name string) []byte {
	f, err := c.files.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTally(t *testing.T) {
	counts := tally{}
	counts.add("one/k000", false, nil)
	counts.add("one/k001", true, nil)
	counts.add("two/k000", false, errors.New("wrong"))
	if got, want := counts.total(), (struct{ passed, refused, failed int }{2, 1, 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	var b strings.Builder
	counts.print(&b)
	for _, line := range []string{"2       2        1       0  one", "1       0        0       1  two"} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("no line %q in\n%s", line, &b)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	for _, folder := range []string{"", t.TempDir(), "does not exist"} {
		if _, err := load(folder); err == nil {
			t.Errorf("%q accepted", folder)
		}
	}
}
