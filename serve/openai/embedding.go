package openai

// maxInputs is the maximum number of texts of a request for vectors.
const maxInputs = 2048

// embeddingMembers are the members of requests for vectors.
var embeddingMembers = object{
	"model": {}, "input": {most: maxInputs}, "encoding_format": {}, "dimensions": {},
	"user": {use: inert}, "request_id": {use: inert}, "keep_alive": {use: inert}, "priority": common["priority"],
	"truncate_prompt_tokens": {}, "truncate": no("want truncate_prompt_tokens", "false", `"NONE"`),
	"add_special_tokens": no("a text has the model's control tokens around it", "true"),
	"normalize":          no("see --normalize of the server"), "embd_normalize": no("see --normalize of the server"),
	"input_type": no("put the text of the model's prompt before the input"), "prompt": no("want input"), "content": no("want input"),
	"messages": no("want input"),
}

// embeddingRequest asks for the vectors of texts.
type embeddingRequest struct {
	Model      string  `json:"model"`
	Input      inputs  `json:"input"`
	Encoding   *string `json:"encoding_format"`
	Dimensions *int    `json:"dimensions"`
	Truncate   *int    `json:"truncate_prompt_tokens"`
}

// inputs are the texts of a request.
type inputs []prompt

// UnmarshalJSON accepts a string, a list of tokens, and a list of these.
func (p *inputs) UnmarshalJSON(b []byte) error {
	return readPrompts((*[]prompt)(p), b, "input", maxInputs)
}

// check refuses values that no model accepts.
func (r *embeddingRequest) check() error {
	switch {
	case r.Input == nil:
		return missing("input")
	case len(r.Input) == 0:
		return refused("input", "an empty list, want a text")
	case r.Encoding != nil && *r.Encoding != "float" && *r.Encoding != "base64":
		return refused("encoding_format", "%s, want float or base64", quote(*r.Encoding))
	case r.Dimensions != nil && *r.Dimensions < 1:
		return refused("dimensions", "%d, want 1 or more", *r.Dimensions)
	case r.Truncate != nil && (*r.Truncate < -1 || *r.Truncate == 0):
		return refused("truncate_prompt_tokens", "%d, want 1 or more, or -1 for the context of the model", *r.Truncate)
	}
	return nil
}
