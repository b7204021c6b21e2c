package serve_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/etrun-go/etrun/internal/await"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/oip"
)

// sum sends a request of a sequence to an adder and returns the first element, or the status of an
// error.
func sum(t *testing.T, s *serve.Server, x float32, parameters string) string {
	t.Helper()
	w := <-send(s, t.Context(), request(x, parameters))
	if w.Code != 200 {
		return fmt.Sprint(w.Code)
	}
	r, err := oip.ReadResponse(w.Body, "", wideLimits)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(r.Outputs[0].Data)
}

// TestSequences checks that sequences keep independent states.
func TestSequences(t *testing.T) {
	s := server(t, serve.Options{}, serve.Config{Name: "m", Open: program("pte/initial_state.pte")})
	step := func(parameters string) string { return sum(t, s, 1, parameters) }
	fresh := step(``)
	one := step(`"sequence_id":"a","sequence_start":true`)
	two := step(`"sequence_id":"a"`)
	three := step(`"sequence_id":"a"`)
	if one != fresh || two == one || three == two {
		t.Fatalf("a sequence got %s, %s, %s, a request without one %s", one, two, three, fresh)
	}
	for _, c := range []struct{ parameters, want string }{
		{``, one}, // no sequence, no state
		{`"sequence_id":"b","sequence_start":true`, one},   // another sequence
		{`"sequence_id":7,"sequence_start":true`, one},     // a number as its id
		{`"sequence_id":"b"`, two},                         // continues
		{`"sequence_id":"a","sequence_start":true`, one},   // restarts
		{`"sequence_id":"a"`, two},                         // continues
		{`"sequence_id":"7","sequence_end":true`, two},     // the same id as a string
		{`"sequence_id":7`, "410"},                         // ended
		{`"sequence_id":"c"`, "410"},                       // never started
		{`"sequence_id":"a","sequence_start":1`, "400"},    // not a bool
		{`"sequence_id":0`, one},                           // the protocol's value for none
		{`"sequence_id":"b","sequence_end":true`, three},   // the last request
		{`"sequence_id":18446744073709551615`, "410"},      // unsigned
		{`"sequence_id":"x","sequence_end":true`, "410"},   // nothing to end
		{`"sequence_id":"a"`, three},                       // unaffected by the others
		{`"sequence_id":1.5,"sequence_start":true`, "400"}, // not an id
	} {
		if got := step(c.parameters); got != c.want {
			t.Errorf("%s: got %s, want %s", c.parameters, got, c.want)
		}
	}
	if n := s.Model("m").Sequences(); n != 1 {
		t.Errorf("%d sequences are open, want 1", n)
	}
}

// TestSequenceMethods checks that the methods of a sequence share its state.
func TestSequenceMethods(t *testing.T) {
	s := server(t, serve.Options{}, serve.Config{Name: "m", Open: program("pte/two_methods.pte")})
	step := func(method string, flags string) string {
		return sum(t, s, 1, `"method":"`+method+`","sequence_id":"a"`+flags)
	}
	before := step("read", `,"sequence_start":true`)
	if got := step("push", ""); got == "410" {
		t.Fatal(got)
	}
	if after := step("read", ""); after == before {
		t.Errorf("got %s before and after a push", after)
	}
	if got := step("read", `,"sequence_start":true`); got != before {
		t.Errorf("after a new start: %s, want %s", got, before)
	}
}

// TestSequenceCallers checks that requests of one sequence run one at a time, and none is lost.
func TestSequenceCallers(t *testing.T) {
	c := serve.Config{Name: "m", Open: program("pte/initial_state.pte"), Instances: 4, Queue: 200}
	s := server(t, serve.Options{}, c)
	const callers, steps = 8, 10
	alone := make([]string, callers*steps)
	for i := range alone {
		alone[i] = sum(t, s, 1, fmt.Sprintf(`"sequence_id":"alone","sequence_start":%v`, i == 0))
	}
	sum(t, s, 1, `"sequence_id":"both","sequence_start":true`)
	seen := make(map[string]int)
	var mu sync.Mutex
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range steps {
				got := sum(t, s, 1, `"sequence_id":"both"`)
				mu.Lock()
				seen[got]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for i, want := range alone[1:] {
		if seen[want] != 1 {
			t.Errorf("answer %d of a sequence came %d times", i+1, seen[want])
		}
	}
}

func TestSequenceLimits(t *testing.T) {
	c := serve.Config{Name: "m", Open: program("pte/initial_state.pte"), Sequences: serve.SequenceLimits{Max: 2, Idle: 40 * time.Millisecond}}
	s := server(t, serve.Options{}, c)
	start := func(id string) string { return sum(t, s, 1, `"sequence_id":"`+id+`","sequence_start":true`) }
	if a, b, c := start("a"), start("b"), start("c"); a == "429" || b == "429" || c != "429" {
		t.Errorf("three sequences, two allowed: %s, %s, %s", a, b, c)
	}
	await.True(t, "idle sequences end", func() bool { return s.Model("m").Sequences() == 0 })
	if got := sum(t, s, 1, `"sequence_id":"a"`); got != "410" {
		t.Errorf("an idle sequence: %s", got)
	}
	c.Sequences = serve.SequenceLimits{Bytes: 10}
	small := server(t, serve.Options{}, c)
	if got := sum(t, small, 1, `"sequence_id":"a","sequence_start":true`); got != "429" || small.Model("m").Sequences() != 0 {
		t.Errorf("above the memory limit: %s, %d sequences", got, small.Model("m").Sequences())
	}
}

// TestSequenceFails checks that a failed run ends its sequence.
func TestSequenceFails(t *testing.T) {
	s := server(t, serve.Options{}, adder("m", func(sum []float32) {
		if sum[0] > 900 {
			panic("broken")
		}
	}))
	sum(t, s, 1, `"sequence_id":"a","sequence_start":true`)
	for i, want := range []string{"500", "410"} {
		if got := sum(t, s, 1000, `"sequence_id":"a"`); got != want {
			t.Errorf("request %d: %s, want %s", i, got, want)
		}
	}
	sum(t, s, 1, `"sequence_id":"b","sequence_start":true`)
	if w := <-send(s, t.Context(), strings.Replace(request(1, `"sequence_id":"b"`), "[4]", "[5]", 1)); w.Code != 400 {
		t.Errorf("a wrong request: %d", w.Code)
	}
	if got := sum(t, s, 1, `"sequence_id":"b"`); got == "410" {
		t.Error("a wrong request ended a sequence")
	}
}
