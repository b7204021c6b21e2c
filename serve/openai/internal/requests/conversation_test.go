package requests

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/serve/openai/internal/openaitest"
	"github.com/etrun-go/etrun/text"
)

// Arguments of past calls that are no JSON are rendered as they are.
func TestBrokenArguments(t *testing.T) {
	model := openaitest.Model(t)
	for _, c := range []struct{ template, want string }{
		{`{{ f.arguments }}`, `{"a": "C:\Users`},
		{`{{ f.arguments | tojson }}`, `"{\"a\": \"C:\\Users"`},
		{`{% for k, v in f.arguments.items() %}{{ k }}={{ v }}{% endfor %}`, `arguments={"a": "C:\Users`},
		{`{{ 'x' + f.arguments }}`, `x{"a": "C:\Users`},
	} {
		template, err := text.NewJinjaTemplate("own", openaitest.Template(c.template), "", "")
		if err != nil {
			t.Fatal(err)
		}
		m := message{Role: "assistant"}
		must := json.Unmarshal([]byte(`[{"id":"i","type":"function","function":{"name":"f","arguments":"{\"a\": \"C:\\Users"}}]`), &m.Calls)
		last, err := m.forTemplate("messages[1]")
		if err != nil || must != nil {
			t.Fatal(err, must)
		}
		got, err := model.RenderConversation(template, &text.Conversation{Messages: []text.Message{{Role: "user", Content: "?"}, last}})
		if want := "<assistant>" + c.want; err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, %v, want %q", c.template, got, err, want)
		}
	}
}
