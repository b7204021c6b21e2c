package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/etrun-go/etrun/internal/grammar"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/oip"
	"github.com/etrun-go/etrun/text"
)

// makerOf makes forms without a server.
func makerOf(t *testing.T) *formMaker { return &formMaker{t.Context(), nil, &forms} }

// A form is compiled once as long as it is kept; what is kept is bounded by number and by size.
func TestFormCache(t *testing.T) {
	c, compiled := &formCache{}, 0
	maker := &formMaker{t.Context(), nil, c}
	get := func(i int) *text.Form {
		f, err := c.get(maker, fmt.Sprint(i), func(text.FormLimit) (*text.Form, error) {
			compiled++
			return text.ChoiceForm([]string{"a", fmt.Sprint(i)})
		})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for range 3 {
		for i := range maxCachedForms {
			get(i)
		}
	}
	if first := get(0); compiled != maxCachedForms || first != get(0) {
		t.Errorf("%d forms compiled, want %d", compiled, maxCachedForms)
	}
	if get(maxCachedForms); len(c.list) != maxCachedForms || c.find("1") != nil || c.find("0") == nil {
		t.Errorf("%d forms are kept", len(c.list))
	}
	large := make([]string, 12)
	for i := range large {
		large[i] = fmt.Sprintf(`{"type":"string","minLength":%d,"maxLength":19000}`, i)
		if _, err := maker.schema([]byte(large[i])); err != nil {
			t.Fatal(err)
		}
		if sum := 0; c.size > maxCachedSize || len(c.list) == 0 {
			t.Fatalf("forms of %d states are kept", c.size)
		} else if i == len(large)-1 {
			for _, f := range c.list {
				sum += f.size()
			}
			if sum != c.size {
				t.Errorf("the size is %d, want %d", c.size, sum)
			}
		}
	}
	if _, err := maker.schema([]byte(`{"not":1}`)); err == nil {
		t.Error("an error is lost")
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for k := range 50 {
				if _, err := maker.schema([]byte(large[(i*k)%7])); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// Few forms are made at once, and one that several requests want is kept once.
func TestFormsAtOnce(t *testing.T) {
	c := &formCache{}
	var running atomic.Int32
	began, end := make(chan bool, 100), make(chan bool)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			_, err := c.get(&formMaker{t.Context(), nil, c}, fmt.Sprint(i%2), func(text.FormLimit) (*text.Form, error) {
				if n := running.Add(1); n > maxCompiling {
					t.Errorf("%d forms at once", n)
				}
				defer running.Add(-1)
				began <- true
				<-end
				return text.ChoiceForm([]string{"a"})
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range maxCompiling {
		<-began
	}
	for range 1000 {
		runtime.Gosched() // the others could begin
	}
	close(end)
	all.Wait()
	if len(c.list) != 2 || len(began) > 2 {
		t.Errorf("%d forms are kept, %d were made later", len(c.list), len(began))
	}
}

// The wait for others that are made ends with the request, and so does the making.
func TestFormsOfEndedRequests(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := &formMaker{ctx, nil, &formCache{}}
	made := 0
	compile := func(limit text.FormLimit) (*text.Form, error) {
		made++
		return text.ChoiceForm([]string{"a"}, limit)
	}
	if _, err := m.make(compile); !isUnmade(err) || !errors.Is(err, context.Canceled) {
		t.Errorf("made: %v", err)
	}
	made = 0
	for range maxCompiling {
		compiling <- struct{}{}
	}
	defer func() {
		for range maxCompiling {
			<-compiling
		}
	}()
	tools := &toolUse{tools: []toolFunction{{Name: "f"}}, must: true}
	for i := range callFormats {
		if _, err := callFormats[i].form(tools, "", m); !isUnmade(err) {
			t.Errorf("%s: %v", callFormats[i].name, err)
		}
	}
	if _, err := m.make(compile); !isUnmade(err) || made > 0 {
		t.Errorf("waited: %v, made %d", err, made)
	}
}

// The memory of forms that are made counts toward that of requests. A request without room for it is refused as others are, and
// what is counted ends with the request.
func TestMemoryOfForms(t *testing.T) {
	const limit = 4 << 20
	s, err := serve.New(serve.Options{BusyBytes: limit})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m := &formMaker{t.Context(), s.NewHold(), &formCache{}}
	r := request{Schema: json.RawMessage(`{"type":"string","maxLength":19000}`)}
	if _, _, err := r.form(m); !errors.Is(err, oip.ErrTooLarge) || m.hold.Size() != 0 {
		t.Errorf("a large form: %v, %d bytes are counted", err, m.hold.Size())
	}
	r = request{Schema: json.RawMessage(`{"type":"string","maxLength":1900}`)}
	f, _, err := r.form(m)
	if err != nil || m.hold.Size() != int64(f.Size())*keptBytes {
		t.Errorf("%v, %d bytes are counted", err, m.hold.Size())
	}
	m.hold.Release()
	if all := s.NewHold(); all.Grow(limit) != nil {
		t.Error("bytes are counted after the request")
	}
}

// A form that is no longer kept has no place in the list either, whose array is longer: it would stay in memory.
func TestDroppedForms(t *testing.T) {
	c, dropped := &formCache{}, 0
	for i := range 2 * maxCachedForms {
		var first weak.Pointer[text.Form]
		if len(c.list) == maxCachedForms {
			first = weak.Make(c.list[0].form)
		}
		if _, err := c.get(&formMaker{t.Context(), nil, c}, fmt.Sprint(i), func(text.FormLimit) (*text.Form, error) { return text.ChoiceForm([]string{"a"}) }); err != nil {
			t.Fatal(err)
		}
		if len(c.list) == maxCachedForms {
			runtime.GC()
			if dropped++; first.Value() != nil {
				t.Fatalf("form %d was dropped and is in memory", i-maxCachedForms)
			}
		}
	}
	if dropped <= maxCachedForms {
		t.Errorf("%d forms were dropped", dropped)
	}
	runtime.KeepAlive(c)
}

// What a format cannot prescribe is refused if the tool is strict, and any value of its type otherwise.
func TestStrictTools(t *testing.T) {
	for _, c := range []struct {
		schema string
		loose  bool // formats whose values are no JSON have it
		listed bool // formats have it whose arguments are a list of JSON values
	}{
		{`{"type":"object","properties":{"s":{"type":"string","pattern":"^a$"}},"required":["s"]}`, false, true},
		{`{"type":"object","properties":{"s":{"enum":["a","b"]},"n":{"type":"integer","minimum":3}}}`, true, true},
		{`{"anyOf":[{"type":"object","properties":{"s":{"type":"string"}}}]}`, false, false},
		{`{"type":"object","properties":{}}`, false, false},
		{`{"type":"object","properties":{},"additionalProperties":false}`, true, true},
	} {
		for i := range callFormats {
			f := &callFormats[i]
			has := c.loose
			switch f.name {
			case "LFM2", "OLMo 3", "Python":
				has = c.listed
			case "Gemma 4", "FunctionGemma", "MiniMax M2", "Seed-OSS", "GLM", "Qwen3-Coder":
			default: // JSON
				has = true
			}
			for _, strict := range []bool{false, true} {
				u := &toolUse{tools: []toolFunction{{"f", json.RawMessage(c.schema), strict}}, must: true}
				_, err := f.form(u, "", makerOf(t))
				_, refused := errors.AsType[*requestError](err)
				if want := strict && !has; refused != want || !want && err != nil {
					t.Errorf("%s, strict %v, %s: %v", f.name, strict, c.schema, err)
				}
			}
		}
	}
}

// The schema of an argument has the definitions of the whole one, and no more; the copies are bounded.
func TestArgumentsThatRefer(t *testing.T) {
	const refer = `{"type":"object","properties":{"a":{"$ref":"#/$defs/d"},"b":%s},"required":["a","b"],"$defs":{"d":{"const":7}}}`
	f := formatNamed(t, "Qwen3-Coder")
	call := func(b string) string {
		return "<tool_call>\n<function=f>\n<parameter=a>\n7</parameter>\n<parameter=b>\n" + b + "</parameter>\n</function>\n</tool_call>"
	}
	for _, c := range []struct {
		schema, yes, not string
		elsewhere        bool
	}{
		{`{"type":"array","items":{"$ref":"#/$defs/d"}}`, "[7]", "[8]", false},
		{`{"type":"integer","maximum":3}`, "2", "4", false},
		{`{"type":"array","items":{"$ref":"#"}}`, `[{"a":1}]`, "[", true},
		{`{"type":"object","properties":{"a":{"type":"null"},"x":{"\u0024ref":"#/properties/a"}}}`, `{"x":7}`, "{", true},
	} {
		tool := toolFunction{Name: "f", Parameters: fmt.Appendf(nil, refer, c.schema)}
		g := grammarOf(t, f, &toolUse{tools: []toolFunction{tool}, must: true}, "")
		for i, b := range []string{c.yes, c.not} {
			m := g.NewMatcher(oneByte, nil)
			if got := m.Advance([]byte(call(b))) && m.Accepts(); got != (i == 0) {
				t.Errorf("%s %s: accepted %v", c.schema, b, got)
			}
		}
		tool.Strict = true
		if _, err := f.form(&toolUse{tools: []toolFunction{tool}, must: true}, "", makerOf(t)); (err != nil) != c.elsewhere {
			t.Errorf("%s: %v", c.schema, err)
		}
	}
	properties := make([]string, 5000)
	for i := range properties {
		properties[i] = fmt.Sprintf(`"%d":{"type":"string"}`, i)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	many := []byte(`{"type":"object","properties":{` + strings.Join(properties, ",") + `}}`)
	w := &formWriter{forms: makerOf(t), schemas: make(map[string][]byte)}
	err := w.reply(f, &toolUse{tools: []toolFunction{{Name: "f", Parameters: many}}, must: true}, "")
	if err != nil || w.rules.Len() > 4*len(many) {
		t.Errorf("%d bytes of rules for %d of parameters, %v", w.rules.Len(), len(many), err)
	}
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 500*uint64(len(many)) {
		t.Errorf("%d bytes were allocated for %d of parameters", after.TotalAlloc-before.TotalAlloc, len(many))
	}
	for _, c := range []struct {
		property string
		ok       bool
	}{{`"%d":{"type":"null"}`, true}, {`"%d":{"$ref":"#/$defs/d"}`, false}} {
		for i := range properties {
			properties[i] = fmt.Sprintf(c.property, i)
		}
		schema := `{"type":"object","properties":{` + strings.Join(properties, ",") + `},"$defs":{"d":{"type":"null","title":"` +
			strings.Repeat("x", 100_000) + `"}}}`
		w := &formWriter{forms: makerOf(t), schemas: make(map[string][]byte)}
		err := w.reply(f, &toolUse{tools: []toolFunction{{Name: "f", Parameters: json.RawMessage(schema)}}, must: true}, "")
		size := 0
		for _, s := range w.schemas {
			size += len(s)
		}
		if (err == nil) != c.ok || size > maxCopied+len(schema) {
			t.Errorf("%s: %d bytes, %v", c.property, size, err)
		}
	}
}

// oneByte has the bytes as tokens.
var oneByte = func() *grammar.Vocabulary {
	texts := make([]string, 256)
	for b := range texts {
		texts[b] = string([]byte{byte(b)})
	}
	return grammar.NewVocabulary(texts)
}()

// deadlineWriter counts the time limits of its writes.
type deadlineWriter struct {
	*httptest.ResponseRecorder
	limits int
}

func (w *deadlineWriter) SetWriteDeadline(time.Time) error {
	w.limits++
	return nil
}

// A request that waited for its form has time for the answer that it is refused.
func TestTimeToRefuse(t *testing.T) {
	server, err := serve.New(serve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	h := &handler{server: server}
	w := &deadlineWriter{httptest.NewRecorder(), 0}
	h.run(w, httptest.NewRequest(http.MethodPost, "/v1/completions", nil), "", nil, server.NewHold(), refused("prompt", "no"))
	if w.Code != http.StatusBadRequest || w.limits == 0 {
		t.Errorf("got %d after %d limits", w.Code, w.limits)
	}
}
