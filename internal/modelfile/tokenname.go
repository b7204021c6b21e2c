package modelfile

import "encoding/json"

// TokenName is the name of a control token in a tokenizer_config.json: a string, or an object with its content.
type TokenName string

// UnmarshalJSON accepts both forms.
func (t *TokenName) UnmarshalJSON(b []byte) error {
	if b[0] != '{' {
		return json.Unmarshal(b, (*string)(t))
	}
	var object struct{ Content string }
	err := json.Unmarshal(b, &object)
	*t = TokenName(object.Content)
	return err
}
