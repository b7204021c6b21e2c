package toolcall

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/text"
)

// Marks of Qwen3-Coder's calls.
const (
	functionBegin  = "<function="
	functionEnd    = "</function>"
	parameterBegin = "<parameter="
	parameterEnd   = "</parameter>"
)

var (
	parameters = &elementMarks{key: parameterBegin, keyed: ">", opens: ">", shut: parameterEnd, end: functionEnd}
	onLines    = &elementMarks{key: parameterBegin, keyed: ">", opens: ">\n", shut: parameterEnd, end: functionEnd}
	invoked    = &elementMarks{key: `<parameter name="`, keyed: `">`, opens: `">`, shut: parameterEnd, end: "</invoke>"}
	argKeys    = &elementMarks{key: "<arg_key>", keyed: "</arg_key>", value: "<arg_value>", opens: "</arg_key>\n<arg_value>",
		shut: "</arg_value>"}
)

// pythonMarks can be around calls of Llama's models.
var pythonMarks = []string{pythonTag, "<|python_start|>", "<|python_end|>"}

// callFormats are tried in order: see callsOf. A mention is a text of the template.
var callFormats = []Format{
	{name: "Mistral", mentions: [][]string{{"[TOOL_CALLS]", "[ARGS]"}}, reader: newHeadReader, write: (*formWriter).head,
		begin: "[TOOL_CALLS]", perCall: true, named: "[ARGS]"},
	{name: "Mistral list", mentions: [][]string{{"[TOOL_CALLS]"}}, reader: newObjectReader, write: (*formWriter).object,
		begin: "[TOOL_CALLS]", open: "[", close: "]", between: ", ", args: "arguments"},
	{name: "Phi", mentions: [][]string{{"<|tool_call|>"}}, reader: newObjectReader, write: (*formWriter).object,
		begin: "<|tool_call|>", open: "[", close: "]", end: "<|/tool_call|>", between: ", ", args: "arguments"},
	{name: "Gemma 4", mentions: [][]string{{"<|tool_call>"}}, reader: newLenientReader, write: (*formWriter).lenient,
		begin: "<|tool_call>", end: "<tool_call|>", perCall: true, head: "call:", named: "{", quote: `<|"|>`},
	{name: "FunctionGemma", mentions: [][]string{{"<start_function_call>"}}, reader: newLenientReader, write: (*formWriter).lenient,
		begin: "<start_function_call>", end: "<end_function_call>", perCall: true, head: "call:", named: "{", quote: "<escape>"},
	{name: "DeepSeek V3", mentions: [][]string{{"<｜tool▁calls▁begin｜>", "```json"}}, reader: newHeadReader, write: (*formWriter).head,
		begin: "<｜tool▁calls▁begin｜>", end: "<｜tool▁calls▁end｜>", open: "<｜tool▁call▁begin｜>", close: "\n```<｜tool▁call▁end｜>",
		between: "\n", head: "function<｜tool▁sep｜>", named: "\n```json\n"},
	{name: "DeepSeek V3.1", mentions: [][]string{{"<｜tool▁calls▁begin｜>"}}, reader: newHeadReader, write: (*formWriter).head,
		begin: "<｜tool▁calls▁begin｜>", end: "<｜tool▁calls▁end｜>", open: "<｜tool▁call▁begin｜>", close: "<｜tool▁call▁end｜>",
		named: "<｜tool▁sep｜>"},
	{name: "Kimi K2", mentions: [][]string{{"<|tool_calls_section_begin|>"}}, reader: newHeadReader, write: (*formWriter).head,
		begin: "<|tool_calls_section_begin|>", end: "<|tool_calls_section_end|>", open: "<|tool_call_begin|>", close: "<|tool_call_end|>",
		head: "functions.", number: ":", named: "<|tool_call_argument_begin|>"},
	{name: "MiniMax M2", mentions: [][]string{{"<minimax:tool_call>"}}, reader: newElementReader, write: (*formWriter).elements,
		begin: "<minimax:tool_call>", end: "</minimax:tool_call>", pad: "\n", between: "\n", head: `<invoke name="`, named: `">`,
		elements: invoked},
	{name: "Seed-OSS", mentions: [][]string{{"<seed:tool_call>"}}, reader: newElementReader, write: (*formWriter).elements,
		begin: "<seed:tool_call>", end: "</seed:tool_call>", perCall: true, pad: "\n", between: "\n", head: functionBegin, named: ">",
		elements: parameters},
	{name: "GLM", mentions: [][]string{{"<arg_key>"}}, reader: newElementReader, write: (*formWriter).elements,
		begin: "<tool_call>", end: "</tool_call>", perCall: true, between: "\n", elements: argKeys},
	{name: "Qwen3-Coder", mentions: [][]string{{"<tool_call>", functionBegin}}, reader: newElementReader, write: (*formWriter).elements,
		begin: "<tool_call>", also: functionBegin, end: "</tool_call>", perCall: true, pad: "\n", between: "\n", head: functionBegin, named: ">",
		elements: onLines},
	{name: "Jamba", mentions: [][]string{{"<tool_calls>"}}, reader: newObjectReader, write: (*formWriter).object,
		begin: "<tool_calls>", open: "[", close: "]", end: "</tool_calls>", between: ", ", args: "arguments"},
	{name: "Hermes", mentions: [][]string{{"<tool_call>"}}, reader: newObjectReader, write: (*formWriter).object,
		begin: "<tool_call>", end: "</tool_call>", perCall: true, pad: "\n", between: "\n", args: "arguments"},
	{name: "Functionary", mentions: [][]string{{"tools", functionBegin}}, reader: newHeadReader, write: (*formWriter).head,
		begin: functionBegin, perCall: true, named: ">", close: functionEnd},
	{name: "LFM2", mentions: [][]string{{"<|tool_call_start|>"}, {"<|tool_list_start|>"}, {"List of tools: ["}}, reader: newAnyReader,
		write: (*formWriter).python, begin: "<|tool_call_start|>", open: "[", close: "]", end: "<|tool_call_end|>", between: ", ", named: "("},
	{name: "OLMo 3", mentions: [][]string{{"<function_calls>"}}, reader: newPythonReader, write: (*formWriter).python,
		begin: "<function_calls>", end: "</function_calls>", between: "\n", named: "("},
	{name: "Nemotron", mentions: [][]string{{"<TOOLCALL>"}}, reader: newObjectReader, write: (*formWriter).object,
		begin: "<TOOLCALL>", open: "[", close: "]", end: "</TOOLCALL>", between: ", ", args: "arguments"},
	{name: "Command R7B", mentions: [][]string{{"<|START_ACTION|>"}}, reader: newObjectReader, write: (*formWriter).object,
		begin: "<|START_ACTION|>", open: "[", close: "]", end: "<|END_ACTION|>", between: ", ", args: "parameters",
		head: `{"tool_call_id": "0", "tool_name": `},
	{name: "InternLM", mentions: [][]string{{"<|action_start|>"}}, reader: newObjectReader, write: (*formWriter).object,
		begin: "<|action_start|><|plugin|>", end: "<|action_end|>", perCall: true, pad: "\n", args: "parameters"},
	{name: "GigaChat", mentions: [][]string{{"<|function_call|>"}}, reader: newObjectReader, write: (*formWriter).object,
		begin: "<|function_call|>", args: "arguments"},
	{name: "Python", mentions: [][]string{{"tools", "func_name1("}}, reader: newAnyReader, write: (*formWriter).python,
		open: "[", close: "]", between: ", ", named: "(", skip: pythonMarks},
	{name: "Llama 3", mentions: [][]string{{"tools", `"parameters"`}}, reader: newAnyReader, write: (*formWriter).object,
		args: "parameters", skip: pythonMarks},
	{name: "JSON", mentions: [][]string{{"tools"}}, reader: newAnyReader, write: (*formWriter).object, args: "arguments",
		skip: pythonMarks},
}

func newObjectReader(f *Format, tools []toolFunction) callReader {
	return &objectReader{staged: staged{end: f.end}, known: knownIn(tools)}
}

// newAnyReader returns the reader of calls in JSON or in Python: models that know both write what their instructions say.
func newAnyReader(f *Format, tools []toolFunction) callReader {
	python := &Format{open: "[", named: "(", end: f.end, skip: pythonMarks}
	return &anyReader{object: newObjectReader(f, tools), python: newPythonReader(python, tools)}
}

func newHeadReader(f *Format, tools []toolFunction) callReader {
	return &headReader{staged: staged{end: f.end}, f: f, known: knownIn(tools)}
}

func knownIn(tools []toolFunction) known {
	return func(name string) bool {
		return slices.ContainsFunc(tools, func(t toolFunction) bool { return t.Name == name })
	}
}

// mentionedBy reports whether a template has the texts by which the format is known.
func (f *Format) mentionedBy(t *text.Template) bool {
	return slices.ContainsFunc(f.mentions, func(list []string) bool {
		return !slices.ContainsFunc(list, func(s string) bool { return !t.Mentions(s) })
	})
}

// reads reports whether the call of a sample is read from a text, which has the notation of the format's own calls.
func (f *Format) reads(reply string) bool {
	if f.begin == "" && !strings.Contains(reply, cmp.Or(f.args, f.named)) {
		return false
	}
	s := NewSplitter(&Splitting{Format: f, tools: []toolFunction{{Name: sampleName}}})
	name, args := "", ""
	for _, p := range s.Push(reply, true) {
		if p.Call != nil {
			name, args = name+p.Call.Function.Name, args+p.Call.Function.Arguments
		}
	}
	var o map[string]string
	return name == sampleName && json.Unmarshal([]byte(args), &o) == nil && len(o) == 1 && o[sampleKey] == sampleValue
}

// The call of a sample.
const (
	sampleName  = "sample_of_a_call"
	sampleKey   = "place"
	sampleValue = "Oslo"
)

// sampleOf returns how a template writes a call of the assistant, from the beginning of the reply; empty if it does not write its name and
// arguments.
func sampleOf(m *text.Model, t *text.Template) string {
	args := json.RawMessage(`{"` + sampleKey + `": "` + sampleValue + `"}`)
	tool := `[{"type": "function", "function": {"name": "` + sampleName + `", "description": "", "parameters": {"type": "object", ` +
		`"properties": {"` + sampleKey + `": {"type": "string", "description": ""}}, "required": ["` + sampleKey + `"]}}}]`
	d := &text.Conversation{Messages: []text.Message{{Role: "user", Content: "?"}}, Tools: json.RawMessage(tool)}
	before, err := m.RenderConversation(t, d)
	if err != nil {
		return ""
	}
	const id = "123456789"
	d.Messages = append(d.Messages, text.Message{Role: "assistant", Calls: []text.Call{{ID: id, Name: sampleName, Arguments: args}}},
		text.Message{Role: "tool", CallID: id, Name: sampleName, Content: "?"}) // some templates write no call without its result
	after, err := m.RenderConversation(t, d)
	if err != nil {
		return ""
	}
	n := 0
	for n < min(len(before), len(after)) && before[n] == after[n] {
		n++
	}
	if i := strings.LastIndexAny(after[:n], "<["); i >= 0 && !strings.ContainsAny(after[i:n], ">]") { // marks may begin alike
		n = i
	}
	if !strings.Contains(after[n:], sampleName) || !strings.Contains(after[n:], sampleValue) {
		return ""
	}
	return after[n:]
}

// FormatOf returns the format of a template's calls: what the template writes for a call is what is read. If it writes none, its texts
// decide.
func FormatOf(m *text.Model, t *text.Template) (*Format, error) {
	if !t.Mentions("tools") {
		return nil, noPlace(t, "there is no place for tools; want the template of a model that has one, see --template")
	}
	sample := sampleOf(m, t)
	var further []*Format
	for i := range callFormats {
		f := &callFormats[i]
		switch known := f.mentionedBy(t); {
		case known && (sample == "" || f.reads(sample)):
			return f, nil
		case !known:
			further = append(further, f)
		}
	}
	for _, f := range further {
		if f.reads(sample) {
			return f, nil
		}
	}
	return nil, noPlace(t, fmt.Sprintf("the form in which it writes calls is not known: %.100q; want another template, see --template",
		sample))
}

// noPlace returns the error for tools that a template cannot have.
func noPlace(t *text.Template, why string) error {
	return fault.Unsupported("tools", "not supported by the chat template %.100q: %s", t.Name(), why)
}
