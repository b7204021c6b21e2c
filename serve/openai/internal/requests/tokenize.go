package requests

// TokenizeMembers are the members of requests for tokens. The names are those of vLLM's server, and content and add_special those of
// llama-server.
var TokenizeMembers = Of(`model prompt add_special_tokens continue_final_message add_generation_prompt reasoning_effort content
	add_special`).
	No(noDetail, "false", "return_token_strs with_pieces").No(noTemplate, "", "chat_template").
	No("names of control tokens are text", "false", "parse_special").
	With(Object{"messages": ChatMembers["messages"], "tools": ChatMembers["tools"],
		"chat_template_kwargs": ChatMembers["chat_template_kwargs"],
		"tool_choice":          ChatMembers["tool_choice"]})

// DetokenizeMembers are the members of requests for the text of tokens.
var DetokenizeMembers = Of("model tokens")

// Tokenize asks for the tokens of a prompt or of messages.
type Tokenize struct {
	Chat
	Prompt  *string `json:"prompt"`
	Special *bool   `json:"add_special_tokens"`

	Content        *string `json:"content"`
	ContentSpecial bool    `json:"add_special"`
}

// Detokenize asks for the text of tokens.
type Detokenize struct {
	Model  string `json:"model"`
	Tokens []int  `json:"tokens"`
}
