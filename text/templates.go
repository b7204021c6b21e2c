package text

// family is a built-in template. detect lists control tokens that only tokenizers of the family have.
type family struct {
	name   string
	detect []string
	format format
}

// thinking names two templates of the same models, whose replies begin with thoughts, and without.
type thinking struct{ with, without string }

var thinkers = []thinking{{"qwen3", "qwen3-nothink"}}

// families is in the order in which FindTemplate tries them.
var families = []family{
	{"llama3.1", []string{"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>", "<|python_tag|>"}, format{
		Begin:   "{<|begin_of_text|>}",
		Message: "{<|start_header_id|>}{role}{<|end_header_id|>}\n\n{text}{<|eot_id|>}",
		Roles:   plainRoles,
		Heading: "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n",
		Trim:    true,
		Ends:    []string{"<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"},
	}},
	{"llama3", []string{"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}, format{
		Begin:   "{<|begin_of_text|>}",
		Message: "{<|start_header_id|>}{role}{<|end_header_id|>}\n\n{text}{<|eot_id|>}",
		Trim:    true,
		Ends:    []string{"<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"},
	}},
	{"phi4", []string{"<|im_start|>", "<|im_sep|>", "<|im_end|>"}, format{
		Message: "{<|im_start|>}{role}{<|im_sep|>}{text}{<|im_end|>}",
		Roles:   plainRoles,
		Ends:    chatMLEnds,
	}},
	{"qwen3", []string{"<|im_start|>", "<|im_end|>", "<think>", "</think>", "<|object_ref_start|>"}, qwen3("")},
	{"qwen3-nothink", nil, qwen3("{<think>}\n\n{</think>}\n\n")},
	{"chatml", []string{"<|im_start|>", "<|im_end|>"}, chatML("", nil)},
	{"qwen2.5", nil, chatML("You are Qwen, created by Alibaba Cloud. You are a helpful assistant.", plainRoles)},
	{"smollm", nil, chatML("", nil)},
	{"smollm2", nil, chatML("You are a helpful AI assistant named SmolLM, trained by Hugging Face", nil)},
	{"gemma", []string{"<start_of_turn>", "<end_of_turn>"}, format{
		Begin:     "{<bos>}",
		Message:   "{<start_of_turn>}{role}\n{text}{<end_of_turn>}\n",
		Roles:     map[string]string{"user": "user", "assistant": "model"},
		Merge:     true,
		Alternate: true,
		Trim:      true,
		Ends:      []string{"<end_of_turn>", "<eos>"},
	}},
	{"phi3", []string{"<|user|>", "<|assistant|>", "<|end|>", "<|placeholder1|>"}, format{
		Message: "{role}\n{text}{<|end|>}\n",
		Roles:   phiRoles,
		Ends:    phiEnds,
	}},
	{"phi4-mini", []string{"<|user|>", "<|assistant|>", "<|end|>"}, format{
		Message: "{role}{text}{<|end|>}",
		Roles:   phiRoles,
		Ends:    phiEnds,
	}},
	{"mistral", []string{"[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"}, format{ // with a token for system messages, as Voxtral has
		Begin:    "{<s>}",
		Message:  "{text}{</s>}",
		Messages: map[string]string{"system": "{[SYSTEM_PROMPT]}{text}{[/SYSTEM_PROMPT]}", "user": "{[INST]}{text}{[/INST]}"},
		Roles:    plainRoles,
		Ends:     []string{"</s>"},
	}},
	{"llava", nil, format{ // LLaVA 1.5
		Begin:    "{<s>}",
		Message:  "{text}{</s>}",
		Messages: map[string]string{"system": "{text} ", "user": "USER: {text} ASSISTANT:"},
		Roles:    plainRoles,
		Picture:  "{part}\n",
		Ends:     []string{"</s>"},
	}},
}

var (
	chatMLEnds = []string{"<|im_end|>", "<|endoftext|>"}
	phiEnds    = []string{"<|end|>", "<|endoftext|>"}
	phiRoles   = map[string]string{"system": "{<|system|>}", "user": "{<|user|>}", "assistant": "{<|assistant|>}"}
	// The models' own templates write messages of tools in another form, which a format cannot express.
	plainRoles = map[string]string{"system": "system", "user": "user", "assistant": "assistant"}
)

// chatML is the template of Qwen, SmolLM and others, with a default system message.
func chatML(system string, roles map[string]string) format {
	return format{Message: "{<|im_start|>}{role}\n{text}{<|im_end|>}\n", Roles: roles, System: system, Ends: chatMLEnds}
}

// qwen3 is the template of Qwen 3, with the beginning of the reply.
func qwen3(reply string) format {
	f := chatML("", plainRoles)
	f.Reply, f.Thought = reply, "</think>"
	return f
}
