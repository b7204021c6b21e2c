package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai"
	"github.com/etrun-go/etrun/serve/openai/internal/openaitest"
	"github.com/etrun-go/etrun/text"
)

// scriptedContext is the number of positions of a scripted model.
const scriptedContext = 1 << 18

// newScriptedPeer serves a model whose tokens are bytes. Its reply to a prompt is that of the script.
func newScriptedPeer(t *testing.T, script func(prompt string) string) *peer {
	t.Helper()
	const begin = "<assistant>"
	operator := kernels.Op{Schema: "test::scripted.out(Tensor tokens, *, Tensor(a!) out)", Func: func(_ *kernels.Ctx, a kernels.Args) error {
		var all []byte
		for _, id := range tensor.Data[int64](a.Tensor(0)) {
			all = append(all, byte(id))
		}
		at := bytes.LastIndex(all, []byte(begin))
		if at < 0 { // the test of the model itself
			return nil
		}
		reply, done := script(string(all[:at]))+"\x00", len(all)-at-len(begin)
		logits := tensor.Data[float32](a.Tensor(1))
		clear(logits)
		logits[reply[min(done, len(reply)-1)]] = 100
		return nil
	}}
	of := func(d tensor.DType, offset int64, sizes ...int) pte.Value {
		return pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: d, Sizes: sizes, DimOrder: tensor.ContiguousOrder(len(sizes)),
			Storage: pte.Planned, Offset: offset}}
	}
	tokens, logits := of(tensor.Int64, 0, 1, scriptedContext), of(tensor.Float32, 8*scriptedContext, 1, 256)
	tokens.Tensor.Dynamism = tensor.DynamicBound
	method := pte.Method{Name: "forward", Operators: []pte.Operator{{Name: "test::scripted", Overload: "out"}}, Values: []pte.Value{tokens, logits},
		Inputs: []int{0}, Outputs: []int{1}, Arenas: []pte.Arena{{Size: 8*scriptedContext + 4*256}},
		Chains: []pte.Chain{{Instructions: []pte.Instruction{{Kind: pte.KernelCall, Args: []int{0, 1, 1}}}}}}
	methods := []pte.Method{method}
	for name, value := range map[string]int64{"get_max_seq_len": scriptedContext, "get_max_context_len": scriptedContext, "get_vocab_size": 256, "get_eos_ids": 0} {
		methods = append(methods, pte.Method{Name: name, Values: []pte.Value{{Kind: tensor.KindInt, Int: value}}, Outputs: []int{0},
			Chains: []pte.Chain{{}}})
	}
	methods = append(methods, pte.Method{Name: "use_kv_cache", Values: []pte.Value{{Kind: tensor.KindBool}}, Outputs: []int{0}, Chains: []pte.Chain{{}}})
	file := ptetest.Write(&pte.Program{Methods: methods}, ptetest.Layout{})
	open := func(ctx context.Context) (*etrun.Program, error) {
		return etrun.OpenSource(ctx, etrun.Bytes("scripted.pte", file), etrun.WithOperators(operator))
	}
	tmpl, err := text.NewJinjaTemplate("own", openaitest.Template(`<tool_call>{"name": "{{ f.name }}", "arguments": {{ f.arguments | tojson }}}</tool_call>`), "", "")
	must(t, err)
	return newPeerWith(t, serve.Options{}, serve.Config{Open: open}, openai.Config{Sessions: 2, Template: tmpl})
}

// agent is how a coding agent asks: members besides the conversation, a tool, and the conversation before a call and after it, with the
// call's id and arguments in their places.
type agent struct {
	path, members, tools string
	before, after        string
	tool, args           string
	unoffered            string
}

// agents write requests as Codex, opencode and Qwen Code do.
var agents = map[string]agent{
	"codex": {asResponse, `"model":"lm","instructions":"You are an agent.","tool_choice":"auto","parallel_tool_calls":true,"reasoning":{"summary":"auto"},"store":false,` +
		`"include":["reasoning.encrypted_content"],"prompt_cache_key":"01a2-7f","client_metadata":{"session_id":"01a2","x-codex-turn-metadata":"{\"turn\":1}"},"stream":true`,
		`{"type":"function","name":"exec_command","description":"Runs a command.","strict":false,"parameters":{"type":"object","properties":{"cmd":{"type":"string",` +
			`"description":"The command."},"yield_time_ms":{"type":"number"}},"required":["cmd"],"additionalProperties":false}},` +
			`{"type":"custom","name":"apply_patch","description":"Edits files.","format":{"type":"grammar","syntax":"lark",` +
			`"definition":"start: \"*** Begin Patch\" LF (/[^*].*/ LF)+ \"*** End Patch\" LF?\n%import common.LF"}},` +
			`{"type":"namespace","name":"multi_agent","description":"Other agents.","tools":[{"type":"function","name":"spawn","description":"d","strict":false,"parameters":{}}]},` +
			`{"type":"web_search","external_web_access":false}`,
		`{"type":"message","id":"msg_1","role":"developer","content":[{"type":"input_text","text":"Rules."}]},{"type":"message","id":"msg_2","role":"user",` +
			`"content":[{"type":"input_text","text":"Say hi"}]}`,
		`{"type":"function_call","status":"completed","name":"exec_command","arguments":%[2]s,"call_id":%[1]q},` +
			`{"type":"function_call_output","id":"fco_1","call_id":%[1]q,"output":"Exit code: 0\nhi\n"}`,
		"exec_command", `{"cmd": "echo hi > hi.txt"}`, "namespace, web_search"},
	"a patch": {asResponse, `"model":"lm","stream":true,"store":false`,
		`{"type":"custom","name":"apply_patch","description":"Edits files.","format":{"type":"grammar","syntax":"lark",` +
			`"definition":"start: \"*** Begin Patch\" LF (/[^*].*/ LF)+ \"*** End Patch\" LF?\n%import common.LF"}}`,
		`{"role":"user","content":"Say hi"}`,
		`{"type":"custom_tool_call","status":"completed","name":"apply_patch","input":%[2]s,"call_id":%[1]q},{"type":"custom_tool_call_output","call_id":%[1]q,"output":"ok"}`,
		"apply_patch", "*** Begin Patch\n@@\n-\ta := \"é\"\n+\\\n*** End Patch", ""},
	"opencode": {asChat, `"model":"lm","max_tokens":1000,"tool_choice":"auto","stream":true,"stream_options":{"include_usage":true}`,
		`{"type":"function","function":{"name":"bash","description":"Runs a command.","parameters":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",` +
			`"properties":{"command":{"type":"string"},"timeout":{"type":"integer","exclusiveMinimum":0,"maximum":9007199254740991},"description":{"type":"string"}},` +
			`"required":["command"],"additionalProperties":false}}}`,
		`{"role":"system","content":"You are an agent."},{"role":"user","content":"Say hi"}`,
		`{"role":"assistant","content":"","tool_calls":[{"id":%[1]q,"type":"function","function":{"name":"bash","arguments":%[2]s}}]},` +
			`{"role":"tool","tool_call_id":%[1]q,"content":"hi\n"}`,
		"bash", `{"command": "echo hi > hi.txt; cat hi.txt", "description": "Greets"}`, ""},
	"qwen": {asChat, `"model":"lm","max_tokens":1000,"stream":true,"stream_options":{"include_usage":true}`,
		`{"type":"function","function":{"name":"run_shell_command","description":"Runs a command.","parameters":{"type":"object","properties":{"command":{"type":"string"},` +
			`"is_background":{"type":"boolean"}},"required":["command"]}}}`,
		`{"role":"system","content":"You are an agent."},{"role":"user","content":[{"type":"text","text":"A folder."},{"type":"text","text":"Say hi"}]}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":%[1]q,"type":"function","function":{"name":"run_shell_command","arguments":%[2]s}}]},` +
			`{"role":"tool","tool_call_id":%[1]q,"content":[{"type":"text","text":"Exit Code: 0"}]}`,
		"run_shell_command", `{"command": "echo hi > hi.txt", "is_background": false}`, ""},
}

// Agents get a call of their tool, and after its result a text.
func TestAgents(t *testing.T) {
	for name, a := range agents {
		t.Run(name, func(t *testing.T) {
			const final = "It is done. ☃"
			p := newScriptedPeer(t, func(prompt string) string {
				if strings.Contains(prompt, "<tool>") {
					return final
				}
				args := a.args
				if args[0] != '{' {
					quoted, _ := json.Marshal(args)
					args = `{"input": ` + string(quoted) + "}"
				}
				return fmt.Sprintf("<tool_call>\n{\"name\": %q, \"arguments\": %s}\n</tool_call>", a.tool, args)
			})
			id, args, content := a.ask(t, p, a.before)
			if id == "" || args != a.args || content != "" {
				t.Fatalf("the call %q with %q, and the text %q; want the arguments %q", id, args, content, a.args)
			}
			quoted, err := json.Marshal(args)
			must(t, err)
			if id, _, content = a.ask(t, p, a.before+","+fmt.Sprintf(a.after, id, quoted)); id != "" || content != final {
				t.Errorf("after the call: another call %q, the text %q, want %q", id, content, final)
			}
		})
	}
}

// ask sends a conversation, and returns the parts of the stream: the id and the arguments of the only call, and the text.
func (a *agent) ask(t *testing.T, p *peer, conversation string) (id, args, content string) {
	t.Helper()
	member := map[string]string{asChat: "messages", asResponse: "input"}[a.path]
	r, err := http.Post(p.http.URL+a.path, "application/json", strings.NewReader(fmt.Sprintf(`{%s,"tools":[%s],%q:[%s]}`, a.members, a.tools, member, conversation)))
	must(t, err)
	defer r.Body.Close()
	var body bytes.Buffer
	_, err = body.ReadFrom(r.Body)
	must(t, err)
	if got := r.Header.Get("Etrun-Tools-Not-Offered"); r.StatusCode != http.StatusOK || got != a.unoffered {
		t.Fatalf("%d, not offered %q, want %q: %s", r.StatusCode, got, a.unoffered, body.Bytes())
	}
	for line := range strings.Lines(body.String()) {
		object, ok := strings.CutPrefix(line, "data: {")
		if !ok {
			continue
		}
		var e struct {
			Choices []struct {
				Delta struct {
					Content string
					Calls   []struct {
						ID       string
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
			}
			Type, Delta string
			Item        struct {
				Name   string
				CallID string `json:"call_id"`
			}
		}
		must(t, json.Unmarshal([]byte("{"+object), &e))
		for _, c := range e.Choices {
			content += c.Delta.Content
			for _, call := range c.Delta.Calls {
				id, args = id+call.ID, args+call.Function.Arguments
			}
		}
		switch e.Type {
		case "response.output_item.added":
			id += e.Item.CallID
		case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
			args += e.Delta
		case "response.output_text.delta":
			content += e.Delta
		}
	}
	return id, args, content
}
