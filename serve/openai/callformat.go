package openai

import (
	"fmt"
	"slices"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/text"
)

// callFormats are tried in order: the first one all of whose texts the template has applies.
var callFormats = []callFormat{
	{name: "Mistral", mentions: []string{"[TOOL_CALLS]", "[ARGS]"}, reader: newHeadReader, write: (*formWriter).head,
		begin: "[TOOL_CALLS]", each: true, named: "[ARGS]"},
	{name: "Mistral list", mentions: []string{"[TOOL_CALLS]"}, reader: newObjectReader, write: (*formWriter).object,
		begin: "[TOOL_CALLS]", open: "[", close: "]", between: ", ", args: "arguments"},
	{name: "Phi", mentions: []string{"<|tool_call|>"}, reader: newObjectReader, write: (*formWriter).object,
		begin: "<|tool_call|>", open: "[", close: "]", end: "<|/tool_call|>", between: ", ", args: "arguments"},
	{name: "Gemma 4", mentions: []string{"<|tool_call>"}, reader: newLooseReader, write: (*formWriter).loose,
		begin: "<|tool_call>", end: "<tool_call|>", each: true, head: "call:", quote: `<|"|>`},
	{name: "FunctionGemma", mentions: []string{"<start_function_call>"}, reader: newLooseReader, write: (*formWriter).loose,
		begin: "<start_function_call>", end: "<end_function_call>", each: true, head: "call:", quote: "<escape>"},
	{name: "DeepSeek V3", mentions: []string{"<｜tool▁calls▁begin｜>", "```json"}, reader: newHeadReader, write: (*formWriter).head,
		begin: "<｜tool▁calls▁begin｜>", end: "<｜tool▁calls▁end｜>", open: "<｜tool▁call▁begin｜>", close: "\n```<｜tool▁call▁end｜>",
		between: "\n", head: "function<｜tool▁sep｜>", named: "\n```json\n"},
	{name: "DeepSeek V3.1", mentions: []string{"<｜tool▁calls▁begin｜>"}, reader: newHeadReader, write: (*formWriter).head,
		begin: "<｜tool▁calls▁begin｜>", end: "<｜tool▁calls▁end｜>", open: "<｜tool▁call▁begin｜>", close: "<｜tool▁call▁end｜>",
		named: "<｜tool▁sep｜>"},
	{name: "Qwen3-Coder", mentions: []string{"<tool_call>", functionBegin}, reader: newElementReader, write: (*formWriter).elements,
		begin: "<tool_call>", also: functionBegin, end: "</tool_call>", each: true, pad: "\n", between: "\n"},
	{name: "Hermes", mentions: []string{"<tool_call>"}, reader: newObjectReader, write: (*formWriter).object,
		begin: "<tool_call>", end: "</tool_call>", each: true, pad: "\n", between: "\n", args: "arguments"},
	{name: "Llama 3", mentions: []string{"tools", `"parameters"`}, reader: newObjectReader, write: (*formWriter).object, args: "parameters"},
	{name: "JSON", mentions: []string{"tools"}, reader: newObjectReader, write: (*formWriter).object, args: "arguments"},
}

func newObjectReader(f *callFormat, tools []toolFunction) callReader {
	return &objectReader{end: f.end, known: knownIn(tools)}
}

func newHeadReader(f *callFormat, tools []toolFunction) callReader {
	return &headReader{f: f, known: knownIn(tools)}
}

func knownIn(tools []toolFunction) known {
	return func(name string) bool {
		return slices.ContainsFunc(tools, func(t toolFunction) bool { return t.Name == name })
	}
}

// foreignCalls are texts of templates whose calls have another form.
var foreignCalls = []string{"<arg_key>", "<｜DSML｜", "<|tool_calls_section_begin|>", "<|channel|>", "<minimax:tool_call>"}

// formatOf returns the format of a template's calls.
func formatOf(t *text.Template) (*callFormat, error) {
	if !t.Mentions("tools") {
		return nil, noPlace(t, "there is no place for tools; want the template of a model that has one, see --template")
	}
	for _, s := range foreignCalls {
		if t.Mentions(s) {
			return nil, noPlace(t, "its calls in the form "+s)
		}
	}
	for i := range callFormats {
		if !slices.ContainsFunc(callFormats[i].mentions, func(s string) bool { return !t.Mentions(s) }) {
			return &callFormats[i], nil
		}
	}
	return nil, noPlace(t, "there is no place for tools") // cannot happen: the last format has no further condition
}

// noPlace returns the error for tools that a template cannot have.
func noPlace(t *text.Template, why string) error {
	return &requestError{etrun.ErrInput, "tools", "unsupported_parameter",
		fmt.Sprintf("tools: not supported by the chat template %.100q: %s", t.Name(), why)}
}
