package requests

// TokenizeMembers are the members of requests for tokens. The names are those of vLLM's server, and content and add_special those of
// llama-server.
var TokenizeMembers = Object{
	"model": {}, "prompt": {}, "add_special_tokens": {}, "messages": ChatMembers["messages"],
	"continue_final_message": {}, "add_generation_prompt": {}, "chat_template_kwargs": ChatMembers["chat_template_kwargs"],
	"return_token_strs": no(noDetail, "false"), "tools": ChatMembers["tools"], "tool_choice": ChatMembers["tool_choice"],
	"reasoning_effort": {}, "chat_template": no(noTemplate),
	"with_pieces": no(noDetail, "false"), "content": {}, "add_special": {},
	"parse_special": no("names of control tokens are text", "false"),
}

// DetokenizeMembers are the members of requests for the text of tokens.
var DetokenizeMembers = Object{"model": {}, "tokens": {}}

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
