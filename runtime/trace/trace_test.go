package trace

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	flatbuffers "github.com/google/flatbuffers/go"
)

// recorded is two runs of a method with an operator, a delegate and its node.
func recorded() *Recorder {
	r := &Recorder{}
	for run := range 2 {
		at := time.Duration(run) * time.Millisecond
		r.Add(Event{Kind: Operator, Name: "aten::add.out", Instruction: 0, Index: -1, Start: at, End: at + 100*time.Microsecond})
		r.Add(Event{Kind: Delegate, Name: "XnnpackBackend", Instruction: 1, Index: -1, Start: at + 100*time.Microsecond, End: at + 400*time.Microsecond})
		r.Add(Event{Kind: Node, Name: "Convolution", Instruction: 1, Index: 0, Start: at + 100*time.Microsecond, End: at + 350*time.Microsecond})
		r.Add(Event{Kind: Execute, Name: "forward", Chain: -1, Index: -1, Start: at, End: at + 500*time.Microsecond})
		r.run++
	}
	return r
}

func TestSummary(t *testing.T) {
	got := recorded().Summary()
	want := []Row{
		{Delegate, "XnnpackBackend", 1, 300 * time.Microsecond, 0.6},
		{Node, "Convolution", 1, 250 * time.Microsecond, 0.5},
		{Operator, "aten::add.out", 1, 100 * time.Microsecond, 0.2},
	}
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	for i := range want {
		if g := got[i]; g.Kind != want[i].Kind || g.Name != want[i].Name || g.Calls != want[i].Calls || g.Total != want[i].Total {
			t.Errorf("row %d: got %+v, want %+v", i, g, want[i])
		}
	}
	// shares are of the summed executes, also over several runs
	if s := got[0].Share; s < 0.599 || s > 0.601 {
		t.Errorf("share of the delegate: got %g, want 0.6", s)
	}
	var text strings.Builder
	if err := recorded().WriteTable(&text); err != nil || !strings.Contains(text.String(), "60.0 %") {
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
	if len(got.TraceEvents) != 8 {
		t.Fatalf("%d events, want 8", len(got.TraceEvents))
	}
	if e := got.TraceEvents[5]; e.Name != "XnnpackBackend" || e.Start != 1100 || e.Duration != 300 || e.Args["run"] != 1 {
		t.Errorf("event 5: %+v", e)
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
		r.Add(Event{})
	}
	if len(r.Events) != 3 || r.Dropped != 2 {
		t.Errorf("%d events kept, %d dropped; want 3 and 2", len(r.Events), r.Dropped)
	}
}
