package toolcall

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/etrun-go/etrun/internal/lazy"
	"github.com/etrun-go/etrun/text"
)

// marksShown are control tokens that are part of replies.
var marksShown = sync.OnceValue(func() []string { return slices.Sorted(maps.Keys(MarksOf(callFormats))) })

// controlText is what names of control tokens in marks look like.
var controlText = lazy.Pattern(`<[^<>\s]+>|\[/?[A-Z_]+\]`)

// MarksOf returns the control tokens in the marks of thoughts and of calls in some formats.
func MarksOf(formats []Format) map[string]bool {
	list := make(map[string]bool)
	add := func(texts ...string) {
		for _, s := range texts {
			for _, mark := range controlText().FindAllString(s, -1) {
				list[mark] = true
			}
		}
	}
	for _, m := range thoughtForms {
		add(m.begin, m.End)
	}
	add("[CALL_ID]", "<|channel>")
	for i := range formats {
		f := &formats[i]
		add(f.begin, f.also, f.end, f.open, f.close, f.head, f.named, f.quote)
		add(f.skip...)
		if e := f.elements; e != nil {
			add(e.key, e.keyed, e.value, e.opens, e.shut, e.end)
		}
	}
	return list
}

// Shown returns the control tokens by which a reply is divided: some, and those that the template has.
func Shown(m *text.Model, t *text.Template, own map[string]bool) map[int]string {
	tok := m.Tokenizer()
	list := make(map[int]string)
	for _, name := range marksShown() {
		id, ok := tok.ID(name)
		if !ok || !t.Mentions(name) && !own[name] && !strings.HasPrefix(t.Name(), "qwen3") {
			continue
		}
		if b, err := tok.Append(nil, id); err == nil && len(b) == 0 {
			list[id] = name
		}
	}
	return list
}

// Tail returns the text of the last tokens of a prompt.
func Tail(m *text.Model, prompt []int, shown map[int]string) string {
	var b []byte
	for _, id := range prompt[max(len(prompt)-16, 0):] {
		b, _ = m.Tokenizer().Append(append(b, shown[id]...), id) // unknown tokens have no text
	}
	return string(b)
}
