package openai_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/serve"
)

// What a form does not enforce is named in a header, and so are the places of an answer that does not satisfy it. A strict schema has to be
// enforced as a whole.
func TestNotEnforced(t *testing.T) {
	p := newPeer(t, serve.Config{})
	for _, c := range []struct {
		schema, strict, stream string
		status                 int
		names, invalid         string
	}{
		{`{"type":"string","pattern":"^(?=[ab]+$).{2}"}`, "true", "false", http.StatusOK, "", ""},
		{`{"properties":{"a, ü":{"enum":["a"],"pattern":"(?<=b)a"}},"required":["a, ü"],"type":"object"}`, "false", "false", http.StatusOK,
			"#/properties/a%2C%20%C3%BC/pattern", "#/a%2C%20%C3%BC"},
		{`{"type":"array","items":{"const":7},"minItems":2,"maxItems":2,"contains":{"const":8}}`, "null", "false", http.StatusOK, "#/contains", "#/0, #/1"},
		{`{"type":"array","items":{"const":7},"minItems":2,"maxItems":2,"contains":{"const":7}}`, "null", "false", http.StatusOK, "#/contains", ""},
		{`{"type":"array","items":{"const":7},"minItems":2,"maxItems":2,"contains":{"const":8}}`, "false", "true", http.StatusOK, "#/contains", "#/0, #/1"},
		{`{"type":"array","items":{"const":7},"minItems":2,"maxItems":2,"contains":{"const":8}}`, "true", "false", http.StatusBadRequest, "", ""},
	} {
		body := `{"prompt":"x","max_tokens":60,"stream":` + c.stream + `,"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":` +
			c.strict + `,"schema":` + c.schema + `}}}`
		r, err := http.Post(p.http.URL+"/v1/completions", "application/json", strings.NewReader(body))
		must(t, err)
		data, err := io.ReadAll(r.Body)
		must(t, err)
		must(t, r.Body.Close())
		invalid := r.Header.Get("Etrun-Schema-Invalid") + r.Trailer.Get("Etrun-Schema-Invalid")
		if names := r.Header.Get("Etrun-Schema-Not-Enforced"); r.StatusCode != c.status || names != c.names || invalid != c.invalid {
			t.Errorf("%s, strict %s, stream %s: got %d, not enforced %q, invalid %q, want %d, %q, %q: %.300s", c.schema, c.strict, c.stream, r.StatusCode, names,
				invalid, c.status, c.names, c.invalid, data)
		}
		if c.status != http.StatusOK && !strings.Contains(string(data), `"param":"response_format.json_schema.strict"`) {
			t.Errorf("%s: %s", c.schema, data)
		}
	}
	const tool = `{"messages":[{"role":"user","content":"x"}],"tool_choice":"required","tools":[{"type":"function","function":{"name":"f","strict":STRICT,` +
		`"parameters":{"type":"object","properties":{"a":{"type":"array","items":{"type":"null"},"maxItems":2,"contains":{"type":"string"}}}}}}]}`
	q := newChatPeer(t, `{% if tools %}{# "parameters" #}{% endif %}?`)
	for _, strict := range []string{"true", "false"} {
		status, data := ask(t, q, "POST", asChat, strings.Replace(tool, "STRICT", strict, 1))
		if refused := status == http.StatusBadRequest && strings.Contains(string(data), "#/properties/a/contains"); refused != (strict == "true") {
			t.Errorf("a tool with strict %s: %d %s", strict, status, data)
		}
		if !json.Valid(data) {
			t.Errorf("a tool with strict %s: %s", strict, data)
		}
	}
}
