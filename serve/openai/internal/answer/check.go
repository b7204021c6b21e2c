package answer

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/etrun-go/etrun/internal/grammar"
)

// Headers about schemas that a form does not enforce as a whole.
const (
	headerNotEnforced = "Etrun-Schema-Not-Enforced" // the keywords
	headerInvalid     = "Etrun-Schema-Invalid"      // where an answer does not satisfy its schema; of a stream, a trailer
)

// maxNamed bounds the places in a header.
const maxNamed = 20

// checker checks finished texts.
type checker struct {
	text  strings.Builder
	texts int
}

// NotEnforced names the keywords of schemas that the answer may not satisfy, if there are some.
func (a *Sink) NotEnforced(pointers []string) {
	if len(pointers) > 0 {
		a.w.Header().Set(headerNotEnforced, places(pointers))
	}
}

// places returns pointers as the value of a header.
func places(pointers []string) string {
	var list []string
	for i, p := range slices.Compact(slices.Sorted(slices.Values(pointers))) {
		if i == maxNamed {
			list = append(list, "and "+strconv.Itoa(len(pointers)-i)+" more")
			break
		}
		name := (&url.URL{Fragment: strings.TrimPrefix(p, "#")}).EscapedFragment()
		list = append(list, "#"+strings.ReplaceAll(name, ",", "%2C"))
	}
	return strings.Join(list, ", ")
}

// collect keeps a text that has to be checked.
func (a *Sink) collect(s string) error {
	if a.Schema == nil {
		return nil
	}
	a.check.text.WriteString(s)
	return a.grow(int64(len(s)))
}

// judge checks the text that has ended.
func (a *Sink) judge() {
	if a.Schema == nil {
		return
	}
	text := a.check.text.String()
	a.check.text.Reset()
	a.check.texts++
	if text == "" { // a call of a tool
		return
	}
	list, err := grammar.Validate(a.Schema, text)
	if err != nil || len(list) == 0 { // the schema is one that another reader of schemas does not accept
		return
	}
	key := headerInvalid
	if a.Stream {
		key = http.TrailerPrefix + key
	}
	value := places(list)
	if a.check.texts > 1 {
		value = "text " + strconv.Itoa(a.check.texts) + ": " + value
	}
	a.w.Header().Add(key, value)
}
