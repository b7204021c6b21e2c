package text

// family is a built-in template. detect are control tokens that only tokenizers of the family have.
type family struct {
	name   string
	detect []string
	source string
}

// families are in the order in which FindTemplate tries them.
var families = []family{
	{"llama3", []string{"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}, `
{{- define "ends"}}<|eot_id|> <|eom_id|> <|end_of_text|>{{end -}}
{{token "<|begin_of_text|>"}}
{{- range .Messages}}
	{{- template "header" .Role}}{{trim .Content}}{{token "<|eot_id|>"}}
{{- end}}
{{- if .Reply}}{{template "header" "assistant"}}{{end}}
{{- define "header"}}{{token "<|start_header_id|>"}}{{.}}{{token "<|end_header_id|>"}}{{"\n\n"}}{{end}}`},

	{"phi4", []string{"<|im_start|>", "<|im_sep|>", "<|im_end|>"}, `
{{- define "ends"}}<|im_end|> <|endoftext|>{{end -}}
{{range .Messages}}{{template "header" .Role}}{{.Content}}{{token "<|im_end|>"}}{{end}}
{{- if .Reply}}{{template "header" "assistant"}}{{end}}
{{- define "header"}}{{token "<|im_start|>"}}{{.}}{{token "<|im_sep|>"}}{{end}}`},

	{"chatml", []string{"<|im_start|>", "<|im_end|>"}, chatML("")},
	{"qwen3", nil, chatML("")},
	{"qwen2.5", nil, chatML("You are Qwen, created by Alibaba Cloud. You are a helpful assistant.")},
	{"smollm", nil, chatML("")},
	{"smollm2", nil, chatML("You are a helpful AI assistant named SmolLM, trained by Hugging Face")},

	{"gemma", []string{"<start_of_turn>", "<end_of_turn>"}, `
{{- define "ends"}}<end_of_turn> <eos>{{end -}}
{{token "<bos>"}}
{{- $system := ""}}
{{- range $i, $m := .Messages}}
	{{- if eq .Role "system"}}
		{{- if $i}}{{fail "a system message that is not the first"}}{{end}}
		{{- $system = printf "%s\n\n" .Content}}
	{{- else}}
		{{- template "header" .Role}}{{$system}}{{trim .Content}}{{token "<end_of_turn>"}}{{"\n"}}
		{{- $system = ""}}
	{{- end}}
{{- end}}
{{- if .Reply}}{{template "header" "assistant"}}{{end}}
{{- define "header"}}{{token "<start_of_turn>"}}{{if eq . "assistant"}}model{{else}}{{.}}{{end}}{{"\n"}}{{end}}`},

	{"phi3", []string{"<|user|>", "<|assistant|>", "<|end|>", "<|placeholder1|>"}, `
{{- define "ends"}}<|end|> <|endoftext|>{{end -}}
{{range .Messages}}{{role .Role}}{{"\n"}}{{.Content}}{{token "<|end|>"}}{{"\n"}}{{end}}
{{- if .Reply}}{{token "<|assistant|>"}}{{"\n"}}{{end}}`},

	{"phi4-mini", []string{"<|user|>", "<|assistant|>", "<|end|>"}, `
{{- define "ends"}}<|end|> <|endoftext|>{{end -}}
{{range .Messages}}{{role .Role}}{{.Content}}{{token "<|end|>"}}{{end}}
{{- if .Reply}}{{token "<|assistant|>"}}{{end}}`},
}

// chatML is the template of Qwen, SmolLM and others, with the system message that is put before
// messages without one.
func chatML(system string) string {
	first := ""
	if system != "" {
		first = `{{if not (and .Messages (eq (index .Messages 0).Role "system"))}}{{template "header" "system"}}` +
			system + `{{template "end"}}{{end}}`
	}
	return `{{define "ends"}}<|im_end|> <|endoftext|>{{end}}` + first +
		`{{range .Messages}}{{template "header" .Role}}{{.Content}}{{template "end"}}{{end}}` +
		`{{if .Reply}}{{template "header" "assistant"}}{{end}}` +
		`{{define "header"}}{{token "<|im_start|>"}}{{.}}{{"\n"}}{{end}}{{define "end"}}{{token "<|im_end|>"}}{{"\n"}}{{end}}`
}
