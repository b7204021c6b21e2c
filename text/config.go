package text

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/internal/jsonerror"
	"github.com/etrun-go/etrun/internal/modelfile"
)

// config has the members of tokenizer_config.json that a template needs.
type config struct {
	Template templates           `json:"chat_template"`
	BOS      modelfile.TokenName `json:"bos_token"`
	EOS      modelfile.TokenName `json:"eos_token"`
}

// templates are the template of a model, or several with names.
type templates []namedTemplate

type namedTemplate struct {
	Name, Template string
}

// UnmarshalJSON accepts a string and a list.
func (t *templates) UnmarshalJSON(b []byte) error {
	if b[0] != '"' {
		return json.Unmarshal(b, (*[]namedTemplate)(t))
	}
	*t = make(templates, 1)
	return json.Unmarshal(b, &(*t)[0].Template)
}

// named returns the template of a name, nil without one.
func (t templates) named(name string) *namedTemplate {
	i := slices.IndexFunc(t, func(x namedTemplate) bool { return x.Name == name })
	if i < 0 {
		return nil
	}
	return &t[i]
}

// toolUse is the name of the template for conversations with tools, in a list of templates and among the files of a model.
const toolUse = "tool_use"

// source returns the template for conversations: the only one, or the one named default.
func (t templates) source() (string, error) {
	if len(t) == 1 {
		return t[0].Template, nil
	}
	if x := t.named("default"); x != nil {
		return x.Template, nil
	}
	if len(t) == 0 {
		return "", errors.New("no chat_template in it; give the model's chat_template.jinja, or the name of a built-in template: " +
			strings.Join(Templates(), ", "))
	}
	var names []string
	for _, x := range t {
		names = append(names, x.Name)
	}
	return "", fmt.Errorf("the templates %.300q, none of which is named default; write one of them to a file chat_template.jinja", names)
}

// configTemplate returns the template in a tokenizer_config.json or chat_template.json.
func configTemplate(name, source string) (*Template, error) {
	var c config
	if err := json.Unmarshal([]byte(source), &c); err != nil {
		return nil, &TemplateError{name, jsonerror.Plain(err)}
	}
	text, err := c.Template.source()
	if err != nil {
		return nil, &TemplateError{name, err}
	}
	t, err := NewJinjaTemplate(name, text, string(c.BOS), string(c.EOS))
	x := c.Template.named(toolUse)
	if err != nil || x == nil || x.Template == text {
		return t, err
	}
	tools, err := NewJinjaTemplate(name+" ("+toolUse+")", x.Template, string(c.BOS), string(c.EOS))
	if err != nil {
		return nil, err
	}
	return t.AddTools(tools), nil
}

// SpecialTokens returns the names of the tokens that begin and end texts in a tokenizer_config.json, empty where it names
// none.
func SpecialTokens(source []byte) (bos, eos string, err error) {
	var c config
	if err := json.Unmarshal(source, &c); err != nil {
		return "", "", jsonerror.Plain(err)
	}
	return string(c.BOS), string(c.EOS), nil
}

// HasTemplate reports whether a tokenizer_config.json has a chat template.
func HasTemplate(source []byte) bool {
	var c config
	return json.Unmarshal(source, &c) == nil && len(c.Template) > 0
}
