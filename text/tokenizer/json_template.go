package tokenizer

import (
	"encoding/json"
	"slices"
)

// processor is a post-processor: the control tokens around a text.
type processor struct {
	Type       string
	Single     []templateItem
	Special    map[string]struct{ IDs []int } `json:"special_tokens"`
	Processors []json.RawMessage

	// Those of BERT and RoBERTa: the name and the id of a token.
	CLS, SEP *namedToken
}

// templateItem is a control token, or the text.
type templateItem struct {
	Token *struct {
		ID   string
		Type int `json:"type_id"`
	} `json:"SpecialToken"`
	Text *struct {
		ID   string
		Type int `json:"type_id"`
	} `json:"Sequence"`
}

// namedToken is a list of a name and an id.
type namedToken struct {
	name string
	id   int
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *namedToken) UnmarshalJSON(data []byte) error {
	return readPair(data, "name and id", &n.name, &n.id)
}

// readTemplate reads the control tokens around a text. BOS and EOS are among them.
func (t *hugging) readTemplate(doc *document) error {
	t.bos = -1
	err := components(doc.PostProcessor, "post_processor", "processors", func(kind string, data json.RawMessage) error {
		var p processor
		if err := json.Unmarshal(data, &p); err != nil {
			return malformed("post_processor", "%.200s", err)
		}
		if kind != "ByteLevel" && len(t.before)+len(t.after) > 0 {
			return unsupported("post_processor", "%s after another template", kind)
		}
		switch kind {
		case "TemplateProcessing":
			return t.readSingle(&p)
		case "BertProcessing", "RobertaProcessing":
			return t.readEnds(&p)
		case "ByteLevel": // changes offsets only
			return nil
		}
		return unsupported("post_processor", "type %.40q", kind)
	})
	if len(t.before) > 0 {
		t.bos = t.before[0]
	}
	t.eos = slices.Clone(t.after)
	return err
}

// readSingle reads the template of one text.
func (t *hugging) readSingle(p *processor) error {
	texts := 0
	for _, item := range p.Single {
		switch {
		case item.Text != nil && item.Text.Type != 0 || item.Token != nil && item.Token.Type != 0:
			return unsupported("post_processor", "a type_id other than 0 for one text")
		case item.Text != nil:
			texts++
			continue
		case item.Token == nil:
			return malformed("post_processor", "an item that is neither a token nor the text")
		}
		ids := p.Special[item.Token.ID].IDs
		if id, ok := t.ID(item.Token.ID); ok && len(ids) == 0 {
			ids = []int{id}
		}
		if len(ids) == 0 {
			return malformed("post_processor", "no token %.60q", item.Token.ID)
		}
		if err := t.frame(texts > 0, ids); err != nil {
			return err
		}
	}
	if texts != 1 {
		return unsupported("post_processor", "a template with %d texts, want one", texts)
	}
	return nil
}

// readEnds reads the two tokens of BERT and RoBERTa.
func (t *hugging) readEnds(p *processor) error {
	if p.CLS == nil || p.SEP == nil {
		return malformed("post_processor", "%s without cls or sep", p.Type)
	}
	if err := t.frame(false, []int{p.CLS.id}); err != nil {
		return err
	}
	return t.frame(true, []int{p.SEP.id})
}

// maxFrame is the maximum number of tokens before a text, and after it.
const maxFrame = 64

// frame adds tokens before or after a text.
func (t *hugging) frame(after bool, ids []int) error {
	for _, id := range ids {
		if id < 0 || id >= len(t.known) || !t.known[id] {
			return malformed("post_processor", "no token has the id %d", id)
		}
	}
	to := &t.before
	if after {
		to = &t.after
	}
	if *to = append(*to, ids...); len(*to) > maxFrame {
		return unsupported("post_processor", "more than %d tokens before or after a text", maxFrame)
	}
	return nil
}

// Frame implements [Framed].
func (t *hugging) Frame() (before, after []int) { return slices.Clone(t.before), slices.Clone(t.after) }
