package toolcall

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/internal/grammar"
	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/serve/openai/internal/forms"
)

// customTool returns a custom tool whose input has a grammar.
func customTool(t *testing.T, syntax, definition string) toolFunction {
	t.Helper()
	d := grammar.Quoted(definition)
	var tool Tool
	err := json.Unmarshal([]byte(`{"type":"custom","custom":{"name":"f","description":"d","format":{"type":"grammar","grammar":{"syntax":"`+syntax+
		`","definition":`+d+`}}}}`), &tool)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := tool.AsFunction("tools[0].custom")
	var offered Tool
	if err != nil || json.Unmarshal(raw, &offered) != nil || offered.Type != "function" || offered.Function.Name != "f" ||
		!strings.Contains(string(raw), d[1:len(d)-1]) {
		t.Fatalf("%s, %v", raw, err)
	}
	return tool.Function
}

// In each format whose arguments are JSON, or strings are, calls of a tool have inputs of its grammar; in the others that is refused.
func TestGrammarsOfInputs(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	texts := make([]string, 256)
	for b := range texts {
		texts[b] = string([]byte{byte(b)})
	}
	v := grammar.NewVocabulary(texts)
	want := regexp.MustCompile(`^f ([^\n]{1,6}\n){1,2}$`)
	tool := customTool(t, "lark", "start: (LINE LF)~1..2\nLINE: /[^\\n]{1,6}/\n%import common.LF")
	for i := range callFormats {
		f := &callFormats[i]
		u := &Use{Tools: []toolFunction{tool}, Must: true, Single: true}
		if f.elements != nil || f.quote != "" {
			_, err := f.Form(u, "", forms.NewMaker(t.Context(), nil))
			if e, ok := errors.AsType[*fault.Error](err); !ok || e.Param != "tools" || !strings.Contains(e.Text, "grammar of f") {
				t.Errorf("%s: got %v, want a refusal", f.name, err)
			}
			continue
		}
		g := grammarOf(t, f, u, "")
		for range 8 {
			reply := walked(t, g, v, r)
			whole := inputOf(f, tool, reply, len(reply))
			if !want.MatchString(whole) {
				t.Errorf("%s: %q: the input %q", f.name, reply, whole)
			}
			if got := inputOf(f, tool, reply, 1+r.IntN(5)); got != whole {
				t.Errorf("%s: %q in steps: got %q, want %q", f.name, reply, got, whole)
			}
		}
	}
}

// inputOf reads the name and the input of the only call of a reply, which comes in steps of bytes.
func inputOf(f *Format, tool toolFunction, reply string, step int) (text string) {
	s := NewSplitter(&Splitting{Format: f, tools: []toolFunction{tool}})
	for len(reply) > 0 {
		n := min(step, len(reply))
		for n < len(reply) && reply[n]&0xc0 == 0x80 {
			n++
		}
		for _, p := range s.Push(reply[:n], n == len(reply)) {
			if p.Call == nil {
				return "a text: " + p.Text
			}
			if p.Call.ID != "" {
				text += p.Call.Custom.Name + " "
			}
			text += p.Call.Custom.Input + p.Call.Function.Arguments
		}
		reply = reply[n:]
	}
	return text
}

// The input is the string in the arguments; arguments of another form are passed on as they are. A call that is cut keeps what is known.
func TestUnwrapper(t *testing.T) {
	for args, want := range map[string]string{
		`{"input":"a\n\"b\\\u00e9\ud83d\ude00/\/"}`: "a\n\"b\\é😀//", ` { "input" : "" }`: "", `{"input":"x","more":1}`: "x",
		`{"input": 7}`: `{"input": 7}`, `{"text":"x"}`: `{"text":"x"}`, `{}`: `{}`, `{"input":"cut\`: "cut", `{"input":"cut\u00`: "cut", `{"input":"c`: "c",
		`{"input":"\ud83dx"}`: "\ufffdx", `{"input":"\ud83d"}`: "\ufffd", `{"input":"\q"}`: `\q`, `{"inp`: "",
	} {
		for step := 1; step <= len(args); step++ {
			u, got := &unwrapper{}, ""
			for rest := args; rest != ""; {
				n := min(step, len(rest))
				for n < len(rest) && rest[n]&0xc0 == 0x80 {
					n++
				}
				got += u.push(rest[:n])
				rest = rest[n:]
			}
			if got != want {
				t.Errorf("%s in steps of %d: got %q, want %q", args, step, got, want)
			}
		}
	}
	if got := AsArguments("a\n\"<"); got != `{"input":"a\n\"<"}` {
		t.Errorf("got %s", got)
	}
}
