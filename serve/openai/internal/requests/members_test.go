package requests

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/serve/openai/internal/fault"
)

// bodies have every kind of object that a request has.
var bodies = []struct {
	members Object
	text    string
}{
	{CompletionMembers, `{"model":"m","prompt":"x","stream":true,"stream_options":{"include_usage":true},"response_format":{"type":"text"}}`},
	{ChatMembers, `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}],
		"chat_template_kwargs":{"enable_thinking":false},"stream":true,"stream_options":{"include_usage":true}}`},
	{ChatMembers, `{"messages":[{"role":"assistant","tool_calls":[{"id":"i","type":"function","function":{"name":"f","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"i","content":"r"}],"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{},"strict":true}}],
		"tool_choice":{"type":"function","function":{"name":"f"}}}`},
	{ChatMembers, `{"messages":[{"role":"assistant","tool_calls":[{"id":"i","type":"custom","custom":{"name":"f","input":"x"}}]}],
		"tools":[{"type":"custom","custom":{"name":"f","format":{"type":"grammar","grammar":{"syntax":"lark","definition":"start: /x/"}}}}],
		"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"custom","custom":{"name":"f"}}]}}}`},
	{ChatMembers, `{"messages":[{"role":"user","content":"x"}],"structured_outputs":{"json":{"type":"object"}}}`},
	{ChatMembers, `{"messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"}}}}`},
	{TokenizeMembers, `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"}]}],"chat_template_kwargs":{}}`},
	{DetokenizeMembers, `{"model":"m","tokens":[1,2]}`},
	{EmbeddingMembers, `{"model":"m","input":["a"],"encoding_format":"float"}`},
	{ResponseMembers, `{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"a"}]},{"type":"function_call_output","call_id":"i","output":"r"}],
		"tools":[{"type":"function","name":"f"},{"type":"custom","name":"g","format":{"type":"text"}}],"tool_choice":{"type":"function","name":"f"},"text":{"format":{"type":"json_schema","schema":{"type":"object"}}},
		"reasoning":{"effort":"low"},"stream":true,"stream_options":{}}`},
}

// place is an object of a body, and the table of its members.
type place struct {
	path    string
	object  map[string]any
	members Object
}

// placesOf lists the objects of a body that have a table.
func placesOf(path string, value any, m member) (list []place) {
	switch v := value.(type) {
	case []any:
		for i := range v {
			list = append(list, placesOf(fmt.Sprintf("%s[%d]", path, i), v[i], m)...)
		}
	case map[string]any:
		members := m.inside
		if m.types != nil {
			kind, _ := v["type"].(string)
			members = m.types[kind]
		}
		list = append(list, place{path, v, members})
		for name, x := range v {
			if m := members[name]; m.inside != nil || m.types != nil {
				list = append(list, placesOf(inner(path, name), x, m)...)
			}
		}
	}
	return list
}

// checkAdded adds a member to the nth object of a body, and checks that it is neither ignored nor accepted unless the
// table lists it.
func checkAdded(t *testing.T, body, nth int, name string, value any) {
	t.Helper()
	b := bodies[body%len(bodies)]
	var root map[string]any
	if err := json.Unmarshal([]byte(b.text), &root); err != nil {
		t.Fatal(err)
	}
	places := placesOf("", root, member{inside: b.members})
	slices.SortFunc(places, func(a, b place) int { return strings.Compare(a.path, b.path) })
	p := places[nth%len(places)]
	if _, given := p.object[name]; given {
		return
	}
	p.object[name] = value
	text, err := json.Marshal(root)
	if err != nil {
		return // no JSON
	}
	err = checkMembers(text, b.members)
	e, _ := errors.AsType[*fault.Error](err)
	m, listed := p.members[name]
	raw, _ := json.Marshal(value)
	neutral := string(raw) == "null" || slices.ContainsFunc(strings.Fields(m.neutral), func(s string) bool { return same(string(raw), s) })
	want := ""
	switch {
	case !listed && (value != nil || p.members.folds(name)):
		want = "unknown_parameter"
	case m.use == unable && !neutral:
		want = "unsupported_parameter"
	case m.inside != nil || m.most > 0:
		return // the value has rules of its own
	}
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: %v", text, err)
	case want != "" && (e == nil || e.Code != want || !strings.HasPrefix(e.Param, inner(p.path, "")) ||
		!strings.Contains(e.Param+".", fmt.Sprintf("%.140s", name))):
		t.Errorf("%.300s: got %v (%+v), want the code %s with the member %q", text, err, e, want, inner(p.path, name))
	}
}

// Nothing that a request contains is ignored: every member of every object is honoured, listed as one without effect, or
// refused by name.
func TestNoMemberIsIgnored(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	values := []any{nil, true, false, 0.0, 1.0, -1.5, "", "x", "auto", []any{}, []any{1.0}, map[string]any{}, map[string]any{"a": 1.0}}
	names := []string{"", "Model", "MODEL", "temprature", "n ", "messages", "prompt", "tools", "inside", "0", "\u00e9"}
	for _, b := range bodies {
		for name, m := range b.members {
			names = append(names, name)
			for inside := range m.inside {
				names = append(names, inside)
			}
		}
	}
	for range 20000 {
		name := names[r.IntN(len(names))]
		if r.IntN(3) == 0 {
			name = fmt.Sprintf("%s%c", name, 'a'+rune(r.IntN(26)))
		}
		checkAdded(t, r.IntN(len(bodies)), r.IntN(16), name, values[r.IntN(len(values))])
	}
}

// FuzzMembers adds a member anywhere.
func FuzzMembers(f *testing.F) {
	f.Add(0, 0, "best_off", `1`)
	f.Add(1, 2, "tool_calls", `[{"id":"a"}]`)
	f.Add(1, 3, "image_url", `{"url":"x"}`)
	f.Add(0, 1, "include_obfuscation", `true`)
	f.Fuzz(func(t *testing.T, body, nth int, name, value string) {
		var v any
		if body < 0 || nth < 0 || json.Unmarshal([]byte(value), &v) != nil || strings.ToValidUTF8(name, "") != name {
			return
		}
		checkAdded(t, body, nth, name, v)
	})
}

// A member twice, lists without end, and bodies that are no objects are refused.
func TestBodies(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`{"model":"m","model":"n"}`, "duplicate"},
		{`{"prompt":"x","stop":[` + strings.Repeat(`"a",`, 20) + `"a"]}`, "stop"},
		{`{"prompt":"x","stop_token_ids":[` + strings.Repeat(`"a",`, 70) + `"a"]}`, "stop_token_ids"},
		{`{"prompt":[` + strings.Repeat(`[1],`, 130) + `[1]]}`, "prompt"},
		{`{"prompt":"x","logit_bias":{` + many(2000) + `}}`, "logit_bias"},
		{`"x"`, "want an object"},
		{`{"model":"m"`, "body"},
		{`{} {}`, "follow"},
	} {
		if err := checkMembers([]byte(c.body), CompletionMembers); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s: got %v, want %q", c.body, err, c.want)
		}
	}
}

func many(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`"%d":1`, i)
	}
	return strings.Join(list, ",")
}
