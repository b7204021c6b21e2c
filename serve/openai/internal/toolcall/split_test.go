package toolcall

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/internal/grammar"
)

// division is what a splitter makes of a reply.
type division struct {
	text, thought string
	calls         []Call
	parts         int // of arguments
}

// divided returns what a splitter makes of a reply that comes in parts.
func divided(t *testing.T, s *Splitting, parts []string) (d division) {
	t.Helper()
	p := NewSplitter(s)
	for i, part := range parts {
		for _, x := range p.Push(part, i == len(parts)-1) {
			d.text, d.thought = d.text+x.Text, d.thought+x.Thought
			if x.Call == nil {
				continue
			}
			if begins := x.Call.ID != ""; begins != (x.Call.Function.Name != "") || *x.Call.Index != len(d.calls)-1+len(x.Call.ID)/9 {
				t.Errorf("%q: the part %+v of call %d after %d", parts, x.Call, *x.Call.Index, len(d.calls))
			} else if begins {
				d.calls = append(d.calls, *x.Call)
				continue
			}
			d.parts++
			d.calls[len(d.calls)-1].Function.Arguments += x.Call.Function.Arguments
		}
	}
	return d
}

// cut divides a text into random parts.
func cut(r *rand.Rand, s string) (parts []string) {
	for s != "" {
		n := 1 + r.IntN(min(len(s), 9))
		parts, s = append(parts, s[:n]), s[n:]
	}
	return append(parts, "")
}

// testTools are tools with arguments of all types.
var testTools = []toolFunction{{Name: "weather", Parameters: json.RawMessage(`{"type":"object","properties":{"town":{"type":"string"},"days":{"type":"integer"}}}`)},
	{Name: "f"}, {Name: "add_2", Parameters: json.RawMessage(`{"properties":{"a":{"type":"number"},"b":{"type":["null","boolean"]},"s":{"enum":["1","x"]},
		"list":{"type":"array","items":{"type":"string"}},"o":{"type":"object","properties":{"n":{"type":"integer"}}}}}`)}}

func formatNamed(t *testing.T, name string) *Format {
	t.Helper()
	for i := range callFormats {
		if f := &callFormats[i]; f.name == name {
			return f
		}
	}
	t.Fatalf("no format %s", name)
	return nil
}

// transcript is a reply of a family's models, and what it means.
type transcript struct {
	format        string
	thoughts      int // the marks, from 1
	reply         string
	text, thought string
	calls         []string // names and arguments in turn
}

const (
	think = iota + 1
	channel
	_
	seedThink
	startThinking
)

// transcripts are replies as the families' models write them, by the published templates.
var transcripts = []transcript{
	{"Hermes", think, "<think>\nlook\n</think>\n\nOne moment.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"town\": \"Rome\"}}\n</tool_call>\n" +
		"<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>", "One moment.", "\nlook\n", []string{"weather", `{"town": "Rome"}`, "f", `{}`}},
	{"Hermes", 0, "a <tool_ca b", "a <tool_ca b", "", nil},
	{"Hermes", 0, "<tool_call>no JSON</tool_call> end", "<tool_call>no JSON</tool_call> end", "", nil},
	{"Hermes", 0, `<tool_call>{"name": "unknown", "arguments": {}}</tool_call>`, `<tool_call>{"name": "unknown", "arguments": {}}</tool_call>`, "", nil},
	{"Hermes", 0, `<tool_call>{"arguments": {"a": "</tool_call>"}, "id": 7, "name": "f"}</tool_call>`, "", "", []string{"f", `{"a": "</tool_call>"}`}},
	{"Hermes", 0, `<tool_call>{"name": "f", "arguments": {"a": "</tool_call>{}"}}</tool_call>.`, ".", "", []string{"f", `{"a": "</tool_call>{}"}`}},
	{"Hermes", 0, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"b\nc\"}}</tool_call>.", ".", "", []string{"f", `{"a": "b\nc"}`}}, // a line feed as it is
	{"Hermes", 0, `<tool_call>{"name": "f"}</tool_call><tool_call>{"name": "f", "arguments": null}</tool_call>`, "", "", []string{"f", "{}", "f", "{}"}},
	{"Hermes", 0, `Look: <tool_call>{"name": "f", "argu`, "Look:", "", nil},
	{"Hermes", 0, `<tool_call>{"name": "weather", "arguments": {"town": "Ro`, "", "", []string{"weather", `{"town": "Ro`}},
	{"Llama 3", 0, `{"name": "weather", "parameters": {"town": "};"}}`, "", "", []string{"weather", `{"town": "};"}`}},
	{"Llama 3", 0, `<|python_tag|>{"name": "f", "parameters": {}}; {"name": "f", "parameters": {"a": 1}}`, "", "", []string{"f", "{}", "f", `{"a": 1}`}},
	{"Llama 3", 0, "It is {warm}.", "It is {warm}.", "", nil},
	{"Llama 3", 0, `{"warm": true}`, `{"warm": true}`, "", nil},
	{"Llama 3", 0, `{"warm":`, `{"warm":`, "", nil},
	{"Llama 3", 0, `[1, 2]`, `[1, 2]`, "", nil},
	{"Llama 3", 0, `{"name": "weather", "para`, "", "", nil},
	{"Mistral list", 0, `[TOOL_CALLS] [{"name": "add_2", "arguments": {"a": 1}, "id": "123456789"}]`, "", "", []string{"add_2", `{"a": 1}`}},
	{"Mistral", 0, `[TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]weather[CALL_ID]123456789[ARGS]{}`, "", "", []string{"f", `{"a": 1}`, "weather", "{}"}},
	{"Mistral", 0, `[TOOL_CALLS]none[ARGS]{"a": 1}`, `[TOOL_CALLS]none[ARGS]{"a": 1}`, "", nil},
	{"Mistral", 0, `So [TOOL_CALLS]weath`, `So`, "", nil},
	{"Phi", 0, `<|tool_call|>[{"name": "f", "arguments": {"x": [1]}}, {"name": "f", "arguments": "{}"}]<|/tool_call|>`, "", "",
		[]string{"f", `{"x": [1]}`, "f", "{}"}},
	{"JSON", 0, "```tool_code\n{\"name\": \"f\", \"parameters\": {\"x\": 2}}\n```", "", "", []string{"f", `{"x": 2}`}},
	{"JSON", 0, "```go\nx := 1\n```", "```go\nx := 1\n```", "", nil},
	{"DeepSeek V3", think, "why\n</think>\n\nYes.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{\"town\": \"`\"}\n```<｜tool▁call▁end｜>\n" +
		"<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "Yes.", "why\n",
		[]string{"weather", "{\"town\": \"`\"}", "f", "{}"}},
	{"DeepSeek V3.1", 0, `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{"days":2}<｜tool▁call▁end｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{}<｜tool▁call▁end｜>` +
		`<｜tool▁calls▁end｜>`, "", "", []string{"weather", `{"days":2}`, "f", "{}"}},
	{"DeepSeek V3.1", 0, `Hm <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>wea`, "Hm", "", nil},
	{"DeepSeek V3.1", 0, `<｜tool▁calls▁begin｜>no<｜tool▁calls▁end｜>`, "<｜tool▁calls▁begin｜>no<｜tool▁calls▁end｜>", "", nil},
	{"Gemma 4", channel, `<|channel>thought
Look.<channel|><|tool_call>call:weather{days:3,town:<|"|>L'Aquila, {IT}<|"|>}<tool_call|><|tool_call>call:f{}<tool_call|>`, "", "\nLook.",
		[]string{"weather", `{"days": 3, "town": "L'Aquila, {IT}"}`, "f", "{}"}},
	{"Gemma 4", 0, `One.<|tool_call>call:add_2{a:1.50,b:true,list:[<|"|>x<|"|>,7],o:{n:007,<|"|>k k<|"|>:[null,-2]},s:1}<tool_call|>`, "One.", "",
		[]string{"add_2", `{"a": 1.50, "b": true, "list": ["x", "7"], "o": {"n": 7, "k k": [null, -2]}, "s": "1"}`}},
	{"Gemma 4", 0, `<|tool_call>call:none{x:1}<tool_call|>`, `<|tool_call>call:none{x:1}<tool_call|>`, "", nil},
	{"Gemma 4", 0, `Sure <|tool_call>call:weather{town:<|"|>Par`, "Sure", "", nil},
	{"Gemma 4", 0, `<|tool_call>call:weather{days:3 town}<tool_call|> end`, "end", "", []string{"weather", `{"days": "3 town"}`}},
	{"Gemma 4", 0, `<|tool_call>call:weather{days:3,town:<|"|>a<|"|>b}<tool_call|> end`, "end", "", []string{"weather", `{"days": 3, "town": "a"}`}},
	{"FunctionGemma", 0, `<start_function_call>call:weather{town:<escape>Rome<escape>,days:2}<end_function_call>`, "", "",
		[]string{"weather", `{"town": "Rome", "days": 2}`}},
	{"Qwen3-Coder", 0, "I look.\n\n<tool_call>\n<function=weather>\n<parameter=town>\nRome\n</parameter>\n<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>\n" +
		"<tool_call>\n<function=f>\n</function>\n</tool_call>", "I look.", "", []string{"weather", `{"town": "Rome", "days": 2}`, "f", "{}"}},
	{"Qwen3-Coder", 0, "<function=weather><parameter=town>a </parameter> <b></parameter></function>", "", "", []string{"weather", `{"town": "a </parameter> <b>"}`}},
	{"Qwen3-Coder", 0, "<function=f><parameter=x>[1, 2]</parameter><parameter=y>True</parameter></function>\n<function=f></function>", "", "",
		[]string{"f", `{"x": [1, 2], "y": true}`, "f", "{}"}},
	{"Qwen3-Coder", 0, "<function=add_2><parameter=a>NaN</parameter><parameter=b>1</parameter><parameter=s>1</parameter></function>", "", "",
		[]string{"add_2", `{"a": "NaN", "b": "1", "s": "1"}`}},
	{"Qwen3-Coder", 0, "<function=weather><parameter=days>10.0</parameter><parameter=town>x = <function=g></parameter></function>", "", "",
		[]string{"weather", `{"days": "10.0", "town": "x = <function=g>"}`}},
	{"Qwen3-Coder", 0, "<function=delete><parameter=x>1</parameter></function>", "<function=delete><parameter=x>1</parameter></function>", "", nil},
	{"Qwen3-Coder", 0, "<tool_call>\nno", "<tool_call>\nno", "", nil},
	{"Qwen3-Coder", 0, "Sure! <function=weather><parameter=town>Paris", "Sure!", "", nil},
	{"Qwen3-Coder", 0, "ok <tool_call>\n<function=weather><para", "ok", "", nil},
	{"Qwen3-Coder", 0, "a < b <functio", "a < b <functio", "", nil},
	{"Seed-OSS", seedThink, "<seed:think>so</seed:think>One.\n<seed:tool_call>\n<function=weather>\n<parameter=town>L'Aquila\nIT</parameter>\n" +
		"<parameter=days>3</parameter>\n</function>\n</seed:tool_call>\n<seed:tool_call>\n<function=f>\n</function>\n</seed:tool_call>", "One.", "so",
		[]string{"weather", `{"town": "L'Aquila\nIT", "days": 3}`, "f", "{}"}},
	{"Seed-OSS", 0, "<seed:tool_call><function=none></function></seed:tool_call>", "<seed:tool_call><function=none></function></seed:tool_call>", "", nil},
	{"GLM", think, "x</think>\nI look.\n<tool_call>add_2\n<arg_key>a</arg_key>\n<arg_value>1.5</arg_value>\n<arg_key>s</arg_key>\n<arg_value>1</arg_value>\n" +
		"<arg_key>o</arg_key>\n<arg_value>{\"n\": 1}</arg_value>\n</tool_call>\n<tool_call>f</tool_call> end", "I look. end", "x",
		[]string{"add_2", `{"a": 1.5, "s": "1", "o": {"n": 1}}`, "f", "{}"}},
	{"Seed-OSS", 0, "<seed:tool_call><function=add_2><parameter=list>['a', \"it's\", None]</parameter><parameter=o>{'n': (1, True)}</parameter>" +
		"<parameter=a>None</parameter></function></seed:tool_call>", "", "",
		[]string{"add_2", `{"list": ["a", "it's", null], "o": {"n": [1, true]}, "a": null}`}},
	{"GLM", 0, "<tool_call>add_2\n<arg_key>a</arg_key>\n<arg_value>1.5</arg_value>\n<arg_key>s</arg_</tool_call>key>\n<arg_value>1</avalue>\n</tool_call> end",
		"end", "", []string{"add_2", `{"a": 1.5}`}},
	{"GLM", 0, "<tool_call>none\n</tool_call>", "<tool_call>none\n</tool_call>", "", nil},
	{"MiniMax M2", 0, "Yes.\n<minimax:tool_call>\n<invoke name=\"weather\">\n<parameter name=\"town\">Rome</parameter>\n" +
		"<parameter name=\"days\">2</parameter>\n</invoke>\n<invoke name=\"f\">\n</invoke>\n</minimax:tool_call>", "Yes.", "",
		[]string{"weather", `{"town": "Rome", "days": 2}`, "f", "{}"}},
	{"Kimi K2", 0, `So.<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>{"town": "Rome"}<|tool_call_end|>` +
		`<|tool_call_begin|>functions.f:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>`, "So.", "",
		[]string{"weather", `{"town": "Rome"}`, "f", "{}"}},
	{"Functionary", 0, `<function=weather>{"town": "Rome"}</function><function=f>{}</function> ok`, "ok", "", []string{"weather", `{"town": "Rome"}`, "f", "{}"}},
	{"Nemotron", 0, `Hm <TOOLCALL>[{"name": "f", "arguments": {}}, {"name": "weather", "arguments": {"town": "a]"}}]</TOOLCALL> .`, "Hm .", "",
		[]string{"f", "{}", "weather", `{"town": "a]"}`}},
	{"Jamba", 0, "<tool_calls>[\n  {\"name\": \"f\", \"arguments\": {\"x\": 1}}\n]</tool_calls>", "", "", []string{"f", `{"x": 1}`}},
	{"Command R7B", startThinking, "<|START_THINKING|>I look.<|END_THINKING|><|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"weather\", " +
		"\"parameters\": {\"town\": \"Rome\"}},\n    {\"tool_call_id\": \"1\", \"tool_name\": \"f\", \"parameters\": {}}\n]<|END_ACTION|>", "", "I look.",
		[]string{"weather", `{"town": "Rome"}`, "f", "{}"}},
	{"InternLM", 0, "Look.<|action_start|><|plugin|>\n{\"name\": \"f\", \"parameters\": {\"a\": 1}}<|action_end|>", "Look.", "", []string{"f", `{"a": 1}`}},
	{"GigaChat", 0, `<|function_call|>{"name": "f", "arguments": {"a": "x"}}`, "", "", []string{"f", `{"a": "x"}`}},
	{"LFM2", 0, `Look.<|tool_call_start|>[weather(town="L'Aquila", days=3), f()]<|tool_call_end|> Done`, "Look. Done", "",
		[]string{"weather", `{"town": "L'Aquila", "days": 3}`, "f", "{}"}},
	{"LFM2", 0, `<|tool_call_start|>[add_2(a=-1.50, b=None, list=['x', "it's", '\"'], o={'n': {'m': [True, (1, 2), {}]}, "k": []}, s='1')]<|tool_call_end|>`, "", "",
		[]string{"add_2", `{"a": -1.50, "b": null, "list": ["x", "it's", "\""], "o": {"n": {"m": [true, [1, 2], {}]}, "k": []}, "s": "1"}`}},
	{"LFM2", 0, `<|tool_call_start|>[none(a=1)]<|tool_call_end|>`, `<|tool_call_start|>[none(a=1)]<|tool_call_end|>`, "", nil},
	{"LFM2", 0, `<|tool_call_start|>[f(a=1 b), weather(town="x")]<|tool_call_end|>.`, ".", "", []string{"f", `{"a": "1 b"}`, "weather", `{"town": "x"}`}},
	{"LFM2", 0, `<|tool_call_start|>[f(a='x', [1])]<|tool_call_end|>.`, ".", "", []string{"f", `{"a": "x"}`}},
	{"LFM2", 0, `<|tool_call_start|>[weather(town='L'Aquila', days=1)]<|tool_call_end|>.`, ".", "", []string{"weather", `{"town": "L'Aquila", "days": 1}`}},
	{"LFM2", 0, `<|tool_call_start|>[weather(town="Ro`, "", "", nil},
	{"OLMo 3", 0, "<function_calls>weather(town=\"a, (b)\")\nf(x=1_000)</function_calls>", "", "", []string{"weather", `{"town": "a, (b)"}`, "f", `{"x": 1000}`}},
	{"Python", 0, `[weather(town="Rome", days=3), f()]`, "", "", []string{"weather", `{"town": "Rome", "days": 3}`, "f", "{}"}},
	{"Python", 0, `<|python_start|>[weather("Rome", 3)]<|python_end|>`, "", "", []string{"weather", `{"town": "Rome", "days": 3}`}},
	{"Python", 0, `[f(a='\n\x41\u00e9\U0001F600\ud83d\ude00\101\q\\', b="""two
"lines\"""", c='')]`, "", "", []string{"f", `{"a": "\nAé😀😀A\\q\\", "b": "two\n\"lines\"", "c": ""}`}},
	{"Python", 0, `<|python_start|><|python_end|>[{"name": "f", "parameters": {"a": 1}}]`, "", "", []string{"f", `{"a": 1}`}},
	{"Llama 3", 0, `<|python_start|>[weather(town="Rome")]<|python_end|>`, "", "", []string{"weather", `{"town": "Rome"}`}},
	{"Llama 3", 0, `[weather] no`, "[weather] no", "", nil},
	{"JSON", 0, `[f()]`, "", "", []string{"f", `{}`}},
	{"LFM2", 0, `<|tool_call_start|>[{"name": "f", "arguments": {"a": 1}}]<|tool_call_end|>.`, ".", "", []string{"f", `{"a": 1}`}},
	{"Python", 0, "[1] is the first source", "[1] is the first source", "", nil},
	{"Python", 0, "[weather] no", "[weather] no", "", nil},
	{"Python", 0, "It is warm.", "It is warm.", "", nil},
}

func (c *transcript) splitting(t *testing.T) *Splitting {
	s := &Splitting{Format: formatNamed(t, c.format), tools: testTools}
	if c.thoughts > 0 {
		s.Thoughts = thoughtForms[c.thoughts-1]
		s.Within = !strings.HasPrefix(c.reply, s.Thoughts.begin)
	}
	return s
}

// Replies are divided in the same way, however they are cut into tokens.
func TestTranscripts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, c := range transcripts {
		for i := range 30 {
			parts := cut(r, c.reply)
			if i == 0 {
				parts = []string{c.reply}
			}
			d := divided(t, c.splitting(t), parts)
			ok := len(d.calls) == len(c.calls)/2
			for i := range min(len(d.calls), len(c.calls)/2) {
				ok = ok && d.calls[i].Function == Called{c.calls[2*i], c.calls[2*i+1]} && len(d.calls[i].ID) == 9
			}
			if !ok || strings.Trim(d.text, "\n ") != c.text || d.thought != c.thought {
				t.Fatalf("%s %q: got %q, %q, %v\nwant %q, %q, %v", c.format, parts, d.text, d.thought, d.calls, c.text, c.thought, c.calls)
			}
		}
	}
}

// Arguments come in parts, as they are generated, and a reply that ends anywhere contains no part of a call in its text.
func TestPartialCalls(t *testing.T) {
	for _, c := range transcripts {
		if len(c.calls) == 0 {
			continue
		}
		single := strings.Split(c.reply, "")
		if d := divided(t, c.splitting(t), single); d.parts < len(d.calls) || len(c.calls[1]) > 12 && d.parts <= len(d.calls) && !strings.Contains(c.reply, `{"arguments"`) {
			t.Errorf("%s %q: arguments in %d parts", c.format, c.reply, d.parts)
		}
		for n := range len(single) {
			d := divided(t, c.splitting(t), single[:n])
			text, f := strings.TrimSpace(d.text), formatNamed(t, c.format)
			for _, mark := range []string{f.begin, f.also, c.splitting(t).Thoughts.begin} { // its beginning may be text
				text = strings.TrimSpace(text[:len(text)-couldBegin(text, mark, false)])
			}
			if !strings.HasPrefix(c.text, text) && f.begin != "" {
				t.Errorf("%s %q: the text %q, want a beginning of %q", c.format, single[:n], d.text, c.text)
			}
			for i, call := range d.calls {
				if call.Function.Name != c.calls[2*i] || !strings.HasPrefix(c.calls[2*i+1], call.Function.Arguments) &&
					call.Function.Arguments != "{}" { // of a call whose arguments have not come
					t.Errorf("%s %q: %+v, want a beginning of %q", c.format, single[:n], call, c.calls[2*i+1])
				}
			}
		}
	}
}

// The work to divide a reply in small parts grows in proportion to its length, whatever is long.
func TestLinearSplit(t *testing.T) {
	begin := map[string]string{
		"Hermes": `<tool_call>{"name": "f", "arguments": {"a": "`, "Mistral": `[TOOL_CALLS]f[ARGS]{"a": "`, "Gemma 4": `<|tool_call>call:f{a:<|"|>`,
		"Qwen3-Coder": "<function=f><parameter=a>", "GLM": "<tool_call>f<arg_key>a</arg_key><arg_value>", "LFM2": "<|tool_call_start|>[f(a='",
		"Python": "[f(a='", "DeepSeek V3": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"a\": \"",
	}
	for i := range callFormats {
		f := &callFormats[i]
		for name, unit := range map[string]string{"space": " ", "lines": "\n", "text": "x", "begin": f.begin + f.open + f.head, "end": f.end + "</parameter> ",
			"brackets": "[", "quote": `"`, "escapes": `\\`, "key": `{"k`} {
			for _, start := range []string{"", f.begin, begin[f.name], f.begin + f.open + f.head + "f" + f.named, f.begin + `{"`, f.begin + "```"} {
				var work [2]int
				for k := range work {
					p := NewSplitter(&Splitting{Format: f, tools: testTools, Thoughts: thoughtForms[0]})
					text := start + strings.Repeat(unit+" ", (k+1)*2_000/(len(unit)+1))
					for s := range slices.Chunk([]byte(text), 4) {
						p.Push(string(s), false)
					}
					work[k] = p.read
				}
				if work[1] > 5*work[0]/2+1000 {
					t.Errorf("%s, %s after %q: %d bytes looked at for 2 kB, %d for 4 kB", f.name, name, start, work[0], work[1])
				}
			}
		}
	}
}

// Any reply is divided within bounds, and in the same way at any cuts.
func FuzzSplit(f *testing.F) {
	for i, c := range transcripts {
		f.Add(c.reply, uint8(i), uint64(i))
	}
	f.Fuzz(func(t *testing.T, reply string, format uint8, seed uint64) {
		s := &Splitting{Format: &callFormats[int(format)%len(callFormats)], tools: testTools, Thoughts: thoughtForms[int(format)%len(thoughtForms)]}
		whole, parts := divided(t, s, []string{reply, ""}), divided(t, s, cut(rand.New(rand.NewPCG(seed, 1)), reply))
		ok := whole.text == parts.text && whole.thought == parts.thought && len(whole.calls) == len(parts.calls)
		for i := range min(len(whole.calls), len(parts.calls)) {
			ok = ok && whole.calls[i].Function == parts.calls[i].Function
		}
		if !ok {
			t.Errorf("%s %q: got %+v in parts, want %+v", s.Format.name, reply, parts, whole)
		}
	})
}

// formTools are tools with arguments of many kinds, for forms of calls.
var formTools = []toolFunction{
	{Name: "weather", Parameters: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","maximum":99},"s":{"type":"string"},
		"w":{"enum":["a","1"]},"b":{"type":"boolean"},"d":{"$ref":"#/$defs/d"}},"required":["n","w"],"additionalProperties":false,
		"$defs":{"d":{"type":"number","minimum":0}}}`)},
	{Name: "f"}, {Name: "add_2", Parameters: json.RawMessage(`{"not":{}}`)},
	{Name: "deep", Parameters: json.RawMessage(`{"type":"object","properties":{"l":{"type":"array","items":{"type":"string"}},"o":{"type":"object"},"x":{}},"required":["l"]}`)},
}

// Each text of the form of demanded calls is divided into calls of known tools, with arguments that their schemas accept, and nothing
// else.
func TestFormsOfCalls(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	texts := make([]string, 256)
	for b := range texts {
		texts[b] = string([]byte{byte(b)})
	}
	v := grammar.NewVocabulary(texts)
	for i := range callFormats {
		f := &callFormats[i]
		for _, single := range []bool{false, true} {
			g := grammarOf(t, f, &Use{Tools: formTools, Must: true, Single: single}, "")
			for range 15 {
				reply := walked(t, g, v, r)
				d := divided(t, &Splitting{Format: f, tools: formTools, single: single}, cut(r, reply))
				if d.text != "" || len(d.calls) == 0 || single && len(d.calls) > 1 {
					t.Fatalf("%s %q: %q, %v", f.name, reply, d.text, d.calls)
				}
				for _, c := range d.calls {
					var args map[string]any
					err := json.Unmarshal([]byte(c.Function.Arguments), &args)
					n, isNumber := args["n"].(float64)
					w := args["w"]
					if err != nil || c.Function.Name == "weather" && (!isNumber || n > 99 || w != "a" && w != "1") || c.Function.Name == "deep" && args["l"] == nil {
						t.Fatalf("%s %q: %v, %v", f.name, reply, c, err)
					}
				}
			}
		}
	}
}

// grammarOf returns the grammar of replies.
func grammarOf(t *testing.T, f *Format, u *Use, thought string) *grammar.Grammar {
	t.Helper()
	b := grammar.NewBuilder()
	p, err := f.build(u, thought)(b)
	if err != nil {
		t.Fatal(err)
	}
	g, err := b.Build(p)
	if err != nil {
		t.Fatalf("%s: %v", f.name, err)
	}
	return g
}

// walked returns a random text of a grammar.
func walked(t *testing.T, g *grammar.Grammar, v *grammar.Vocabulary, r *rand.Rand) string {
	t.Helper()
	m := g.NewMatcher(v, nil)
	var b []byte
	for left := m.Least() + r.IntN(120); left > 0 && !m.Complete(); left-- {
		var ids []int
		m.Each(v, left-1, func(id int) { ids = append(ids, id) })
		if len(ids) == 0 {
			break
		}
		b = append(b, byte(ids[r.IntN(len(ids))]))
		m.Advance(b[len(b)-1:])
	}
	return string(b)
}

// Without a demand a reply is any text, or calls; with a thought at its beginning, what follows it is calls.
func TestFreeForms(t *testing.T) {
	call := "<tool_call>\n" + `{"name": "f", "arguments": {}}` + "\n</tool_call>"
	texts := make([]string, 256)
	for b := range texts {
		texts[b] = string([]byte{byte(b)})
	}
	v := grammar.NewVocabulary(texts)
	for _, c := range []struct {
		format  string
		u       Use
		thought string
		yes     []string
		not     []string
	}{
		{"Hermes", Use{Strict: true}, "", []string{"", "téxt <tool_c", call, "text" + call, "<<tool_call>\n" + call[12:]}, []string{"<tool_call>x", call + "x"}},
		{"Hermes", Use{Must: true}, "</think>", []string{"so </think>\n\n" + call, "</think>" + call}, []string{call, "so </think>", "so </think> no"}},
		{"Llama 3", Use{Single: true}, "", []string{"", "It is.", "\n It", " ", `{"name": "f", "parameters": {}}`},
			[]string{"{", "[1]", `{"x":1}`, ` {"x":1}`, "\n[", "```", pythonTag + "{", "<think></think>{"}},
		{"Hermes", Use{Strict: true}, "</think>", []string{"", "a<tool_call>", "a</think>" + call, "a</think>\nb" + call, "</think>"},
			[]string{"</think><tool_call>x", "</think>" + call + "x"}},
		{"Qwen3-Coder", Use{Strict: true}, "", []string{"", "<function", "<tool_<funct", "<<function<tool_call>\n<function=f>\n</function>\n</tool_call>"},
			[]string{"<function=", "<tool_<function=x", "a<function=f>\n</function>", "<tool_call>x"}},
		{"Hermes", Use{Answer: json.RawMessage(`{"const":"<tool_call>"}`)}, "", []string{`"<tool_call>"`, call, call + "\n" + call},
			[]string{"", "x", call + `"<tool_call>"`, `"<tool_call>"` + call, `{}`}},
		{"Hermes", Use{Answer: json.RawMessage(`{"const":1}`), Must: true}, "", []string{call}, []string{"1", ""}},
		{"Hermes", Use{Answer: json.RawMessage(`{"const":1}`), Single: true}, "</think>", []string{"so</think>\n\n1", "</think>1", "1</think>" + call},
			[]string{"1", call, "</think>", "</think>" + call + "\n" + call, "</think></think>1"}},
		{"Llama 3", Use{Strict: true}, "</think>", []string{"so", "so </think>", "so </think>\nIt", `</think>{"name": "f", "parameters": {}}`},
			[]string{"so </think>{", "</think> ["}},
	} {
		c.u.Tools = []toolFunction{{Name: "f"}}
		g := grammarOf(t, formatNamed(t, c.format), &c.u, c.thought)
		for i, s := range append(c.yes, c.not...) {
			m := g.NewMatcher(v, nil)
			if got := m.Advance([]byte(s)) && m.Accepts(); got != (i < len(c.yes)) {
				t.Errorf("%+v %q: accepted %v", c.u, s, got)
			}
		}
	}
}
