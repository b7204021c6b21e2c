package requests

import (
	"slices"
	"testing"

	"github.com/etrun-go/etrun/serve/openai/internal/openaitest"
)

// TestDescription compares the description of the API with the members that have an effect.
func TestDescription(t *testing.T) {
	_, schemas := openaitest.Description(t)
	for name, members := range map[string]Object{"Completion": CompletionMembers, "Chat": ChatMembers, "Message": messageMembers,
		"Tokenize": TokenizeMembers, "Detokenize": DetokenizeMembers, "Embedding": EmbeddingMembers, "ResponseRequest": ResponseMembers} {
		schemas[name].CheckNames(t, name, slices.Collect(honouredIn(members)))
		for member, m := range members {
			if m.use == honoured && m.inside != nil && name != "Message" && member != "messages" && member != "tools" && member != "input" { // lists
				schemas[name].Properties[member].CheckNames(t, name+"."+member, slices.Collect(honouredIn(m.inside)))
			}
		}
	}
}

// honouredIn yields the members that have an effect.
func honouredIn(o Object) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for name, m := range o {
			if m.use == honoured && !yield(name) {
				return
			}
		}
	}
}
