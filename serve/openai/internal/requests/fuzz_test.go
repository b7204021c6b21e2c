package requests

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/serve/openai/internal/forms"
)

// FuzzRequest checks that a body either becomes a job whose options are within their limits, or is
// refused as the client's fault.
func FuzzRequest(f *testing.F) {
	for _, body := range []string{
		`{"model":"m","prompt":"x","stop":["a"],"logit_bias":{"5":-100},"seed":1,"logprobs":2,"stream":true,"stream_options":{"include_usage":true}}`,
		`{"model":"m","prompt":[[1,2]],"max_tokens":3,"echo":false,"n":1,"best_of":1,"top_k":1}`,
		`{"model":"m","prompt":["a",[1,2]],"n":3,"best_of":3,"presence_penalty":-2,"frequency_penalty":0.5}`,
		`{"prompt":"x","max_tokens":3.0,"seed":1e3,"stop_token_ids":[5.0]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"}]}],"max_completion_tokens":1,"top_logprobs":1,"logprobs":true}`,
		`{"messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"i","type":"function","function":{"name":"f","arguments":"{}"}}]},` +
			`{"role":"tool","tool_call_id":"i","content":"r"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],` +
			`"tool_choice":"required","parallel_tool_calls":false,"chat_template_kwargs":{"enable_thinking":true},"reasoning_effort":"low"}`,
		`{"messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"}}}}`,
		`{"model":"m","input":"x","instructions":"i","max_output_tokens":4,"text":{"format":{"type":"json_object"}},"store":false,"stream":true}`,
		`{"input":[{"role":"user","content":[{"type":"input_text","text":"a"}]},{"type":"reasoning","content":[{"type":"reasoning_text","text":"t"}]},` +
			`{"type":"function_call","call_id":"i","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"i","output":"r"}],` +
			`"tools":[{"type":"function","name":"f","parameters":{"type":"object"},"strict":true}],"tool_choice":"auto","reasoning":{"effort":"low"}}`,
		`{"model":"m","input":["a","b"],"encoding_format":"base64","dimensions":8.0,"user":"u"}`, `{"input":[[1,2],[3]]}`, `{"input":[1,2]}`,
		`{"messages":[{"role":"assistant","tool_calls":[{"id":"i","type":"custom","custom":{"name":"f","input":"x"}}]}],"tools":[{"type":"custom","custom":{"name":"f",` +
			`"description":"d","format":{"type":"grammar","grammar":{"syntax":"lark","definition":"start: \"x\""}}}},{"type":"mcp"}],` +
			`"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"custom","custom":{"name":"f"}}]}}}`,
		`{"input":[{"type":"custom_tool_call","call_id":"i","name":"f","input":"x"},{"type":"custom_tool_call_output","call_id":"i","output":"r"}],` +
			`"tools":[{"type":"custom","name":"f","format":{"type":"grammar","syntax":"regex","definition":"a+"}},{"type":"web_search"}],` +
			`"tool_choice":{"type":"custom","name":"f"},"include":["x"]}`,
		`{"prompt":"x","guided_json":{"type":"array","items":{"enum":[1,"a"]}}}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		checkEmbedding(t, text)
		var c Completion
		var d Chat
		var x Response
		for _, r := range []struct {
			members Object
			into    Body
		}{{CompletionMembers, &c}, {ChatMembers, &d}, {ResponseMembers, &x}} {
			err := Decode(text, r.members, r.into)
			var j *Job
			if err == nil {
				j, err = r.into.Job(forms.NewMaker(t.Context(), nil))
			}
			if err != nil {
				if !errors.Is(err, etrun.ErrInput) {
					t.Errorf("%q: %v is not the client's fault", text, err)
				}
				continue
			}
			if j.Texts*len(j.prompts) < 1 || j.Texts*len(j.prompts) > maxTexts {
				t.Errorf("%q: %d texts of %d prompts", text, j.Texts, len(j.prompts))
			}
			if o := &j.Options; o.MaxTokens < 0 || len(o.Stop) > maxStop || o.Top > maxCandidates || o.TopK < 0 {
				t.Errorf("%q: options %+v", text, o)
			}
		}
	})
}

// checkEmbedding checks a request for vectors.
func checkEmbedding(t *testing.T, text []byte) {
	var e Embedding
	err := Decode(text, EmbeddingMembers, &e)
	if err == nil {
		err = e.Check()
	}
	switch {
	case err != nil && !errors.Is(err, etrun.ErrInput):
		t.Errorf("%q: %v is not the client's fault", text, err)
	case err == nil && (len(e.Input) < 1 || len(e.Input) > maxInputs || e.Dimensions != nil && *e.Dimensions < 1):
		t.Errorf("%q: %d texts, %v dimensions", text, len(e.Input), e.Dimensions)
	}
	for _, p := range e.Input {
		if err == nil && (p.Text == nil) == (p.Tokens == nil) {
			t.Errorf("%q: an input %+v", text, p)
		}
	}
}

// Nested lists do not make the time quadratic.
func TestNestedPrompt(t *testing.T) {
	body := `{"prompt":` + strings.Repeat("[", 9000) + strings.Repeat(" ", 1<<19) + strings.Repeat("]", 9000) + "}"
	begin := time.Now()
	var r Completion
	if err := Decode([]byte(body), CompletionMembers, &r); !errors.Is(err, etrun.ErrInput) || time.Since(begin) > 10*time.Second {
		t.Errorf("got %v after %v", err, time.Since(begin))
	}
}
