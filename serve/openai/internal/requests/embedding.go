package requests

import "github.com/etrun-go/etrun/serve/openai/internal/fault"

// maxInputs is the maximum number of texts of a request for vectors.
const maxInputs = 2048

// EmbeddingMembers are the members of requests for vectors.
var EmbeddingMembers = Of("model encoding_format dimensions truncate_prompt_tokens").Inert("user request_id keep_alive").
	No("want truncate_prompt_tokens", `false "NONE"`, "truncate").
	No("a text has the model's control tokens around it", "true", "add_special_tokens").
	No("see --normalize of the server", "", "normalize embd_normalize").
	No("put the text of the model's prompt before the input", "", "input_type").No("want input", "", "prompt content messages").
	With(Object{"input": {most: maxInputs}, "priority": common["priority"]})

// Embedding asks for the vectors of texts.
type Embedding struct {
	Model      string  `json:"model"`
	Input      inputs  `json:"input"`
	Encoding   *string `json:"encoding_format"`
	Dimensions *int    `json:"dimensions"`
	Truncate   *int    `json:"truncate_prompt_tokens"`
}

// inputs are the texts of a request.
type inputs []Prompt

// UnmarshalJSON accepts a string, a list of tokens, and a list of these.
func (p *inputs) UnmarshalJSON(b []byte) error {
	return readPrompts((*[]Prompt)(p), b, "input", maxInputs)
}

// Check refuses values that no model accepts.
func (r *Embedding) Check() error {
	switch {
	case r.Input == nil:
		return fault.Missing("input")
	case len(r.Input) == 0:
		return fault.Refused("input", "an empty list, want a text")
	case r.Encoding != nil && *r.Encoding != "float" && *r.Encoding != "base64":
		return fault.Refused("encoding_format", "%s, want float or base64", fault.Quote(*r.Encoding))
	case r.Dimensions != nil && *r.Dimensions < 1:
		return fault.Refused("dimensions", "%d, want 1 or more", *r.Dimensions)
	case r.Truncate != nil && (*r.Truncate < -1 || *r.Truncate == 0):
		return fault.Refused("truncate_prompt_tokens", "%d, want 1 or more, or -1 for the context of the model", *r.Truncate)
	}
	return nil
}
