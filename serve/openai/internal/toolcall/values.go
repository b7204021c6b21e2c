package toolcall

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/etrun-go/etrun/internal/grammar"
	"github.com/etrun-go/etrun/internal/lazy"
)

// valueSchema is what the arguments of a tool are, as far as it decides how values that are no JSON are read.
type valueSchema struct {
	Type       json.RawMessage            `json:"type"`
	Properties map[string]json.RawMessage `json:"properties"`
	Items      json.RawMessage            `json:"items"`
	Enum       []json.RawMessage          `json:"enum"`
	Const      json.RawMessage            `json:"const"`
}

// words returns the values of enum or const if they are strings, nil if not.
func (s *valueSchema) words() (list []string) {
	values := s.Enum
	if s.Const != nil {
		values = []json.RawMessage{s.Const}
	}
	for _, raw := range values {
		var word *string
		if json.Unmarshal(raw, &word) != nil || word == nil {
			return nil
		}
		list = append(list, *word)
	}
	return list
}

func schemaOf(raw json.RawMessage) (s valueSchema) {
	if json.Unmarshal(OrNull(raw), &s) != nil { // such as true
		return valueSchema{}
	}
	return s
}

// kind returns the type of values, the first one that is not null; empty for any.
func (s *valueSchema) kind() (kind string) {
	var list []string
	if s.words() != nil {
		return "string"
	}
	if json.Unmarshal(OrNull(s.Type), &kind) == nil || json.Unmarshal(s.Type, &list) != nil {
		return kind
	}
	for _, k := range list {
		if k != "null" {
			return k
		}
	}
	return ""
}

var (
	integerText = lazy.Pattern(`^[+-]?[0-9]+$`)
	numberText  = lazy.Pattern(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$`)
)

// integerJSON returns an integer as JSON.
func integerJSON(s string) (string, bool) {
	if !integerText().MatchString(s) {
		return "", false
	}
	digits := strings.TrimLeft(strings.TrimLeft(s, "+-"), "0")
	switch {
	case digits == "":
		return "0", true
	case s[0] == '-':
		return "-" + digits, true
	}
	return digits, true
}

// numberJSON returns a finite number as JSON.
func numberJSON(s string) (string, bool) {
	x, err := strconv.ParseFloat(s, 64)
	if !numberText().MatchString(s) || err != nil || math.IsInf(x, 0) {
		return "", false
	}
	if json.Valid([]byte(s)) {
		return s, true
	}
	return strconv.FormatFloat(x, 'g', -1, 64), true
}

// wordJSON returns a word as JSON: one of some.
func wordJSON(s string, words ...string) (string, bool) {
	for _, w := range words {
		if strings.EqualFold(s, w) {
			return w, true
		}
	}
	return "", false
}

// scalarJSON returns a value that is written without quotes as JSON of its type; as a string if it is none of that type.
func scalarJSON(raw, kind string) string {
	s := strings.TrimSpace(raw)
	text, ok := "", false
	switch kind {
	case "string":
	case "boolean":
		text, ok = wordJSON(s, "true", "false")
	case "integer":
		text, ok = integerJSON(s)
	case "number":
		text, ok = numberJSON(s)
	case "null":
	default:
		if text, ok = wordJSON(s, "true", "false", "null"); !ok {
			text, ok = integerJSON(s)
		}
		if !ok {
			text, ok = numberJSON(s)
		}
		if !ok && json.Valid([]byte(s)) && kind != "" || !ok && s != "" && strings.IndexByte(`{["`, s[0]) >= 0 && json.Valid([]byte(s)) {
			text, ok = s, true
		}
		if !ok && (kind == "object" || kind == "array") {
			text, ok = pythonLiteral(s)
		}
	}
	if !ok && kind != "" && kind != "string" {
		text, ok = wordJSON(s, "null")
		if !ok && strings.EqualFold(s, "none") {
			text, ok = "null", true
		}
	}
	if !ok {
		return grammar.Quoted(raw)
	}
	return text
}

// property returns the schema of a member.
func (s *valueSchema) property(key string) valueSchema { return schemaOf(s.Properties[key]) }

// AnyObject is the schema of JSON objects.
const AnyObject = `{"type":"object"}`
