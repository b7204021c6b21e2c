package profile

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	pprof "github.com/google/pprof/profile"

	"github.com/etrun-go/etrun/runtime/trace"
)

const us = time.Microsecond

// recorded returns runs of a method: two additions, the second executed twice, and a delegate
// with three nodes. In the run stalled the first addition is slow.
func recorded(runs, stalled int) (events []trace.Event) {
	for run := range runs {
		at := time.Duration(run) * time.Second
		tell := func(e trace.Event, took time.Duration) {
			e.Method, e.Run, e.Start, e.End = "forward", int64(run+1), at, at+took
			at += took
			events = append(events, e)
		}
		first := 10 * us
		if run == stalled {
			first = 500 * time.Millisecond
		}
		tell(trace.Event{Kind: trace.Operator, Name: "aten::add.out", Instruction: 0, Index: -1}, first)
		for range 2 {
			tell(trace.Event{Kind: trace.Operator, Name: "aten::add.out", Instruction: 1, Index: -1}, 5*us)
		}
		for i, name := range []string{"Conv", "Copy", "Conv"} {
			tell(trace.Event{Kind: trace.Node, Name: name, Instruction: 2, Index: i}, 20*us)
		}
		tell(trace.Event{Kind: trace.Delegate, Name: "delegate 0, X<&>", Instruction: 2, Index: -1}, 70*us)
		tell(trace.Event{Kind: trace.Execute, Name: "forward", Chain: -1, Instruction: -1, Index: -1}, first+10*us+70*us+10*us)
	}
	return events
}

func TestNew(t *testing.T) {
	list := New(recorded(9, 4))
	if len(list) != 1 || list[0].Runs != 9 || list[0].Median != 100*us || list[0].Max != 500*time.Millisecond+90*us {
		t.Fatalf("got %+v", list)
	}
	type row struct {
		name        string
		at          string
		calls       int
		median, max time.Duration
		share       float64
	}
	check := func(what string, rows []Row, want []row) {
		t.Helper()
		if len(rows) != len(want) {
			t.Fatalf("%s: %d rows, want %d: %+v", what, len(rows), len(want), rows)
		}
		for i := range rows {
			r := &rows[i]
			if got := (row{r.Name, r.Place(), r.Calls, r.Median, r.Max, math.Round(r.Share*1000) / 1000}); got != want[i] {
				t.Errorf("%s, row %d: got %+v, want %+v", what, i, got, want[i])
			}
		}
	}
	p := list[0]
	check("instructions", p.Rows, []row{
		{"aten::add.out", "0", 1, 10 * us, 500 * time.Millisecond, 0.1},
		{"aten::add.out", "1", 2, 10 * us, 10 * us, 0.1},
		{"delegate 0, X<&>", "2", 1, 70 * us, 70 * us, 0.7},
		{outsideInstructions, "", 1, 10 * us, 10 * us, 0.1},
	})
	check("nodes", p.Rows[2].Parts, []row{
		{"Conv", "node 0", 1, 20 * us, 20 * us, 0.2},
		{"Copy", "node 1", 1, 20 * us, 20 * us, 0.2},
		{"Conv", "node 2", 1, 20 * us, 20 * us, 0.2},
		{outsideNodes, "", 1, 10 * us, 10 * us, 0.1},
	})
	check("operators", p.ByOperator(), []row{
		{"delegate 0, X<&>", "2", 1, 70 * us, 70 * us, 0.7},
		{"aten::add.out", "", 3, 20 * us, 500*time.Millisecond + 10*us, 0.2},
		{outsideInstructions, "", 1, 10 * us, 10 * us, 0.1},
	})
	check("nodes by name", p.ByOperator()[0].Parts, []row{
		{"Conv", "", 2, 40 * us, 40 * us, 0.4},
		{"Copy", "node 1", 1, 20 * us, 20 * us, 0.2},
		{outsideNodes, "", 1, 10 * us, 10 * us, 0.1},
	})
}

// Failed and incomplete runs are ignored.
func TestNewLeavesOut(t *testing.T) {
	events := recorded(3, -1)
	events[7].Err = errors.New("failed")
	if list := New(events[:len(events)-1]); len(list) != 1 || list[0].Runs != 1 {
		t.Errorf("got %+v, want one run", list)
	}
	if list := New(recorded(1, -1)[:7]); len(list) != 0 {
		t.Errorf("without an execute: got %+v", list)
	}
	if list := New(append(recorded(1, -1)[3:6], recorded(1, -1)[7])); len(list) != 1 || len(list[0].Rows) != 1 {
		t.Errorf("nodes without their delegate: got %+v", list)
	}
}

func TestWriteTable(t *testing.T) {
	p := New(recorded(9, 4))[0]
	var b strings.Builder
	if err := p.WriteTable(&b, p.ByOperator(), func(s string) string { return s }); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"method forward, 9 runs: median 100.0µs, max 500.1ms\n", " 70.0 %      1   2  delegate 0, X<&>\n", " 40.0 %      2        Conv\n",
		" 20.0 %      3      aten::add.out\n", " 10.0 %      1      outside instructions\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}

// pprof's own parser accepts the profile, and the medians in it add up to the method's.
func TestWritePprof(t *testing.T) {
	var b bytes.Buffer
	if err := WritePprof(&b, New(recorded(9, 4))); err != nil {
		t.Fatal(err)
	}
	p, err := pprof.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	sum := int64(0)
	deepest := 0
	for _, s := range p.Sample {
		sum += s.Value[0]
		deepest = max(deepest, len(s.Location))
		if root := s.Location[len(s.Location)-1].Line[0].Function.Name; root != "forward" {
			t.Errorf("root %q, want forward", root)
		}
	}
	if want := int64(100 * us); sum != want || deepest != 3 || len(p.Sample) != 7 {
		t.Errorf("%d samples of %d ns, %d deep, want 7 of %d ns, 3 deep", len(p.Sample), sum, deepest, want)
	}
}

// A flame graph is valid XML; the boxes of a row are as wide as the one above them.
func TestWriteFlame(t *testing.T) {
	profiles := New(recorded(9, 4))
	profiles[0].Rows[0].Name = "aten::<b>\x00\x1b[31m"
	var b bytes.Buffer
	if err := WriteFlame(&b, profiles); err != nil {
		t.Fatal(err)
	}
	widths := make(map[string]float64) // by y
	d := xml.NewDecoder(&b)
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		e, ok := token.(xml.StartElement)
		if !ok || e.Name.Local != "svg" || len(e.Attr) == 0 || e.Attr[0].Value != "cell" {
			continue
		}
		attributes := make(map[string]string)
		for _, a := range e.Attr {
			attributes[a.Name.Local] = a.Value
		}
		var width float64
		if _, err := fmt.Sscanf(attributes["width"], "%f%%", &width); err != nil {
			t.Fatalf("width %q: %v", attributes["width"], err)
		}
		widths[attributes["y"]] += width
	}
	want := map[string]float64{"0.0": 100, "22.0": 100, "44.0": 70}
	for y, w := range want {
		if math.Abs(widths[y]-w) > 0.1 {
			t.Errorf("row at %s: %v %% wide, want %v", y, widths[y], w)
		}
	}
	if len(widths) != len(want) {
		t.Errorf("rows %v, want %v", widths, want)
	}
}
