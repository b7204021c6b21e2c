package ollama

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/serve/openai/internal/openaitest"
	"github.com/etrun-go/etrun/serve/openai/internal/requests"
)

// Results of tools belong to calls by their ids, names, or order.
func TestMessages(t *testing.T) {
	for _, c := range []struct{ messages, calls, results string }{
		{`[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}},{"function":{"name":"g","arguments":{}}}]},
			{"role":"tool","content":"1"},{"role":"tool","content":"2"}]`, `000000000 {"a":1},000000001 {}`, "000000000,000000001"},
		{`[{"role":"assistant","tool_calls":[{"function":{"name":"f"}},{"function":{"name":"g"}}]},
			{"role":"tool","tool_name":"g","content":"1"},{"role":"tool","tool_name":"f","content":"2"}]`, "000000000 ,000000001 ", "000000001,000000000"},
		{`[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"i","function":{"name":"f","arguments":"{\"a\": "}}]},
			{"role":"tool","tool_call_id":"i","content":"1"}]`, `i {"a": `, "i"},
		{`[{"role":"tool","content":"of nothing"}]`, "", "000000000"},
	} {
		var list []message
		if err := json.Unmarshal([]byte(c.messages), &list); err != nil {
			t.Fatal(err)
		}
		got, err := messagesOf(list)
		if err != nil {
			t.Errorf("%s: %v", c.messages, err)
		}
		var calls, results []string
		for _, m := range got {
			for _, x := range m.Calls {
				calls = append(calls, x.ID+" "+x.Function.Arguments)
			}
			if m.Role == "tool" {
				results = append(results, m.CallID)
			}
		}
		if strings.Join(calls, ",") != c.calls || strings.Join(results, ",") != c.results {
			t.Errorf("%s: calls %q, results %q; want %q, %q", c.messages, calls, results, c.calls, c.results)
		}
	}
}

// The documentation lists every member, and the description of the API none that there is not.
func TestMembersAreDescribed(t *testing.T) {
	page, err := os.ReadFile(openaitest.Folder("docs", "serve-doors.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## Ollama's API")
	section, _, _ = strings.Cut(section, "\n## ")
	_, schemas := openaitest.Description(t)
	for name, o := range map[string]requests.Object{"OllamaChat": ChatMembers, "OllamaGenerate": GenerateMembers, "OllamaEmbed": EmbedMembers,
		"OllamaShow": ShowMembers, "options": options} {
		for member := range o {
			if !strings.Contains(section, "`"+member+"`") {
				t.Errorf("docs/serve-doors.md does not list %s of %s", member, name)
			}
		}
		schema := schemas[name]
		if name == "options" {
			schema = schemas["OllamaChat"].Properties[name]
		}
		for member := range schema.Properties {
			if _, ok := o[member]; !ok {
				t.Errorf("%s has no member %s", name, member)
			}
		}
	}
}
