package toolcall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/internal/grammar"
	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/serve/openai/internal/forms"
)

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
				u := &Use{Tools: []toolFunction{{Name: "f", Parameters: json.RawMessage(c.schema), Strict: strict}}, Must: true}
				_, err := f.Form(u, "", forms.NewMaker(t.Context(), nil))
				_, refused := errors.AsType[*fault.Error](err)
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
		g := grammarOf(t, f, &Use{Tools: []toolFunction{tool}, Must: true}, "")
		for i, b := range []string{c.yes, c.not} {
			m := g.NewMatcher(oneByte, nil)
			if got := m.Advance([]byte(call(b))) && m.Accepts(); got != (i == 0) {
				t.Errorf("%s %s: accepted %v", c.schema, b, got)
			}
		}
		tool.Strict = true
		if _, err := f.Form(&Use{Tools: []toolFunction{tool}, Must: true}, "", forms.NewMaker(t.Context(), nil)); (err != nil) != c.elsewhere {
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
	b := grammar.NewBuilder()
	p, err := f.build(&Use{Tools: []toolFunction{{Name: "f", Parameters: many}}, Must: true}, "")(b)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 500*uint64(len(many)) {
		t.Errorf("%d bytes were allocated for %d of parameters", after.TotalAlloc-before.TotalAlloc, len(many))
	}
	if g, err := b.Build(p); err != nil || g.Size() > 2*len(many) {
		t.Errorf("%d states for %d bytes of parameters, %v", g.Size(), len(many), err)
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
		_, err := f.build(&Use{Tools: []toolFunction{{Name: "f", Parameters: json.RawMessage(schema)}}, Must: true}, "")(grammar.NewBuilder())
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.property, err)
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

// A form that the server could not make is no fault of the tools.
func TestFormsThatAreNotMade(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tools := &Use{Tools: []toolFunction{{Name: "f"}}, Must: true}
	for i := range callFormats {
		if _, err := callFormats[i].Form(tools, "", forms.NewMaker(ctx, nil)); !fault.IsUnmade(err) {
			t.Errorf("%s: %v", callFormats[i].name, err)
		}
	}
}
