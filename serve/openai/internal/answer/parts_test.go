package answer

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/serve/openai/internal/toolcall"
	"github.com/etrun-go/etrun/text"
)

// Calls are answered when they are complete; arguments that a text ended within are the string that they are.
func TestParts(t *testing.T) {
	style := &Style{Lines: true, Failed: func(d *fault.Detail) any { return d.Message }, Object: func(p *Part) any {
		list := []any{p.Text, p.Thought}
		for _, c := range p.Calls {
			list = append(list, c.Name, c.Arguments())
		}
		return append(list, p.Done)
	}}
	server, err := serve.New(serve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	call := func(id, name, args string) *toolcall.Call {
		return &toolcall.Call{ID: id, Function: toolcall.Called{Name: name, Arguments: args}}
	}
	pieces := []toolcall.Piece{{Thought: "why"}, {Text: "so"}, {Call: call("1", "f", "")}, {Call: call("", "", `{"a":`)}, {Call: call("", "", `1}`)},
		{Call: call("2", "g", "")}, {Call: call("3", "h", `{"b`)}}
	for stream, want := range map[bool]string{
		true:  `["","why",false] ["so",null,false] ["",null,"f",{"a":1},false] ["",null,"g",{},false] ["",null,"h","{\"b",false] ["",null,true]`,
		false: `["so","why","f",{"a":1},"g",{},"h","{\"b",true]`,
	} {
		w := httptest.NewRecorder()
		a := New(server, w, "m", Wanted{Stream: stream, Style: style}, server.NewReservation())
		for i := range pieces {
			if err := a.form.add(&pieces[i], nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.form.finish(text.FinishStop); err != nil {
			t.Fatal(err)
		}
		a.End(nil)
		if got := strings.Join(strings.Split(strings.TrimSpace(w.Body.String()), "\n"), " "); got != want {
			t.Errorf("stream %v: got %s, want %s", stream, got, want)
		}
	}
	w := httptest.NewRecorder()
	New(server, w, "m", Wanted{Style: style}, server.NewReservation()).End(fault.Refused("x", "no"))
	var message string
	if err := json.Unmarshal(w.Body.Bytes(), &message); err != nil || message != "x: no" || w.Code != 400 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
