package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	flatbuffers "github.com/google/flatbuffers/go"
)

// recorded returns two concurrent runs of a method with an operator, a delegate and its node, and a
// load.
func recorded() *Recorder {
	r := &Recorder{}
	tell := func(e Event, run int64, from, to time.Duration) {
		e.Method, e.Instance, e.Run = "forward", run, run
		e.Start, e.End = time.Duration(run)*time.Millisecond+from*time.Microsecond, time.Duration(run)*time.Millisecond+to*time.Microsecond
		r.Observe(&e)
	}
	stage := Event{Kind: Stage, Name: StageParse, Chain: -1, Instruction: -1, Delegate: -1, Index: -1, Bytes: 12}
	r.Observe(&stage)
	for _, step := range []struct {
		Event
		from, to time.Duration
	}{
		{Event{Kind: Operator, Name: "aten::add.out", Instruction: 0, Delegate: -1, Index: -1}, 0, 100},
		{Event{Kind: Node, Name: "Convolution", Backend: "XnnpackBackend", Instruction: 1, Index: 0}, 100, 350},
		{Event{Kind: Delegate, Name: "delegate 0, XnnpackBackend", Backend: "XnnpackBackend", Instruction: 1, Index: -1}, 100, 400},
		{Event{Kind: Execute, Name: "forward", Chain: -1, Instruction: -1, Delegate: -1, Index: -1}, 0, 500},
	} {
		for run := range int64(2) { // interleaved, as from two concurrent instances
			tell(step.Event, run+1, step.from, step.to)
		}
	}
	return r
}

func TestSummary(t *testing.T) {
	got := recorded().Summary()
	want := []Row{
		{Kind: Delegate, Name: "delegate 0, XnnpackBackend", Calls: 1, Total: 300 * time.Microsecond, Share: 0.6},
		{Kind: Node, Name: "Convolution", Depth: 1, Calls: 1, Total: 250 * time.Microsecond, Share: 0.5},
		{Kind: Delegate, Name: "outside nodes", Depth: 1, Total: 50 * time.Microsecond, Share: 0.1},
		{Kind: Operator, Name: "aten::add.out", Calls: 1, Total: 100 * time.Microsecond, Share: 0.2, delegate: -1},
		{Kind: Execute, Name: "outside instructions", Total: 100 * time.Microsecond, Share: 0.2},
	}
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d: %+v", len(got), len(want), got)
	}
	for i := range want {
		g := got[i]
		if math.Abs(g.Share-want[i].Share) > 1e-9 {
			t.Errorf("row %d: share %g, want %g", i, g.Share, want[i].Share)
		}
		if g.Share = want[i].Share; g != want[i] {
			t.Errorf("row %d: got %+v, want %+v", i, g, want[i])
		}
	}
	var text strings.Builder
	if err := recorded().WriteTable(&text); err != nil || !strings.Contains(text.String(), "60.0 %      1  delegate  delegate 0, XnnpackBackend\n") ||
		!strings.Contains(text.String(), "50.0 %      1      node    Convolution\n") {
		t.Errorf("table (%v):\n%s", err, text.String())
	}
}

func TestWriteChrome(t *testing.T) {
	var b bytes.Buffer
	if err := recorded().WriteChrome(&b); err != nil {
		t.Fatal(err)
	}
	var got struct{ TraceEvents []chromeEvent }
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.TraceEvents) != 9+3 { // plus three thread names
		t.Fatalf("%d events, want 12", len(got.TraceEvents))
	}
	if e := got.TraceEvents[1]; e.Name != "parse" || e.Args["bytes"] != 12.0 || len(e.Args) != 1 {
		t.Errorf("event 1: %+v", e)
	}
	if e := got.TraceEvents[4]; e.Name != "thread_name" || e.Args["name"] != "forward #2" {
		t.Errorf("event 4: %+v", e)
	}
	if e := got.TraceEvents[9]; e.Name != "delegate 0, XnnpackBackend" || e.Start != 2100 || e.Duration != 300 || e.Args["run"] != 2.0 || e.Thread != 2 {
		t.Errorf("event 9: %+v", e)
	}
}

func TestWriteETDump(t *testing.T) {
	var b bytes.Buffer
	if err := recorded().WriteETDump(&b); err != nil {
		t.Fatal(err)
	}
	data := b.Bytes()
	if n := flatbuffers.GetUint32(data); int(n) != len(data)-4 {
		t.Errorf("size prefix %d of %d bytes", n, len(data))
	}
	if id := string(data[8:12]); id != "ED00" {
		t.Errorf("identifier %q, want ED00", id)
	}
	root := &flatbuffers.Table{Bytes: data[4:], Pos: flatbuffers.GetUOffsetT(data[4:])}
	runs := root.VectorLen(flatbuffers.UOffsetT(root.Offset(6)))
	if runs != 2 {
		t.Errorf("%d runs, want 2", runs)
	}
	for _, name := range []string{"native_call_aten::add.out", "OPERATOR_CALL", "DELEGATE_CALL", "Convolution", "Method::execute"} {
		if !bytes.Contains(data, []byte(name)) {
			t.Errorf("no event %q", name)
		}
	}
}

func TestMaxDropsAndCounts(t *testing.T) {
	r := &Recorder{Max: 3}
	for range 5 {
		r.Observe(&Event{Context: context.Background()})
	}
	if len(r.Events) != 3 || r.Dropped != 2 {
		t.Errorf("%d events kept, %d dropped; want 3 and 2", len(r.Events), r.Dropped)
	}
	if r.Events[0].Context != nil {
		t.Error("a kept event has its context")
	}
	if r.Reset(); len(r.Events) != 0 || r.Dropped != 0 {
		t.Errorf("after Reset: %d events, %d dropped", len(r.Events), r.Dropped)
	}
}

func TestTimeIsThatOfTheReading(t *testing.T) {
	before := time.Now()
	at := Time(Now())
	if after := time.Now(); at.Before(before) || at.After(after) {
		t.Errorf("got %v, want from %v to %v", at, before, after)
	}
}
