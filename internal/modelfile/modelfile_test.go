package modelfile

import (
	"strings"
	"testing"
)

func TestIdentify(t *testing.T) {
	for _, c := range []struct{ data, want string }{
		{"{% for m in messages %}{{ m.role }}{% endfor %}", Jinja},
		{"{{- bos_token }}\n{%- if tools %}", Jinja},
		{"{#- a comment #}{%- set x = 1 %}", Jinja},
		{`{"chat_template": "{% for m in messages %}x{% endfor %}", "eos_token": "<|im_end|>"}`, TokenizerConfig},
		{`{"add_bos_token":true,"tokenizer_class":"LlamaTokenizer"}`, TokenizerConfig},
		{"\ufeff {\"added_tokens_decoder\":{}}", TokenizerConfig},
		{`{"chat_template": "{{ x }}"}`, ChatTemplate},
		{`{"version":"1.0","truncation":null,"added_tokens":[],"model":{"type":"BPE"}}`, TokenizerJSON},
		{`{"config":{"pattern":"x"},"vocab":[],"special_tokens":[]}`, Tekken},
		{`{"!":0,"\"":1,"#":2}`, Vocabulary},
		{`{"<pad>":32000,"cut`, Vocabulary},
		{"#version: 0.2\nĠ t\n", Merges},
		{`{"architectures":["LlamaForCausalLM"],"eos_token_id":2}`, ModelConfig},
		{`{"bos_token_id":1,"eos_token_id":2,"transformers_version":"4"}`, Generation},
		{`{"bos_token":"<s>","eos_token":"</s>"}`, SpecialTokens},
		{`{"dim":2048,"n_layers":16}`, Params},
		{`{"metadata":{},"weight_map":{}}`, WeightIndex},
		{`{"message":"{role}{text}"}`, Template},
		{"\x1c\x00\x00\x00ET12", Program},
		{"\x10\x00\x00\x00\x00\x00\x00\x00{\"a\":{}}", Safetensors},
		{"GGUF\x03", GGUF},
		{"PK\x03\x04", Zip},
		{"", Unknown}, {"{", Unknown}, {"{}", Unknown}, {"[1]", Unknown}, {"plain text", Unknown}, {`{"a":"b"}`, Unknown}, {`{"a":`, Unknown},
	} {
		if got := Identify([]byte(c.data)); got != c.want {
			t.Errorf("%q: got %q, want %q", c.data, got, c.want)
		}
	}
}

func FuzzIdentify(f *testing.F) {
	f.Add([]byte(`{"a":1}`))
	f.Add([]byte(strings.Repeat("[", 100)))
	f.Fuzz(func(_ *testing.T, data []byte) { Identify(data) })
}
