package openai

// tokenizeMembers are the members of requests for tokens. The names are those of vLLM's server.
var tokenizeMembers = object{
	"model": {}, "prompt": {}, "add_special_tokens": {}, "messages": chatMembers["messages"],
	"continue_final_message": {}, "add_generation_prompt": {}, "chat_template_kwargs": chatMembers["chat_template_kwargs"],
	"return_token_strs": no(noDetail, "false"), "tools": chatMembers["tools"], "tool_choice": chatMembers["tool_choice"],
	"reasoning_effort": {}, "chat_template": no(noTemplate),
	"with_pieces": no(noDetail, "false"), "content": no("want prompt"), "add_special": no("want add_special_tokens"),
	"parse_special": no("names of control tokens are text", "false"),
}

// detokenizeMembers are the members of requests for the text of tokens.
var detokenizeMembers = object{"model": {}, "tokens": {}}

// tokenizeRequest asks for the tokens of a prompt or of messages.
type tokenizeRequest struct {
	chatRequest
	Prompt  *string `json:"prompt"`
	Special *bool   `json:"add_special_tokens"`
}

// detokenizeRequest asks for the text of tokens.
type detokenizeRequest struct {
	Model  string `json:"model"`
	Tokens []int  `json:"tokens"`
}
