package text

import (
	"context"
	"slices"
)

// advance makes the logits after a chosen token available. If the token is the next one of a draft,
// they are; else the token is computed, together with a new draft.
func (g *generation) advance(ctx context.Context, id int) error {
	if g.ahead > 0 && g.tokens[len(g.tokens)-g.ahead] == id {
		g.ahead--
		g.stats.Accepted++
		return nil
	}
	g.dropDraft()
	g.call = append(g.call[:0], id)
	g.call = append(g.call, g.draft(id)...)
	if err := g.compute(ctx, g.call); err != nil {
		return err
	}
	g.ahead = len(g.call) - 1
	g.stats.Drafted += g.ahead
	return nil
}

// dropDraft removes the rest of a draft from the session.
func (g *generation) dropDraft() {
	g.rewind(len(g.tokens) - g.ahead)
	g.ahead = 0
}

// Lengths of the suffixes of a text that are looked up, in tokens.
const (
	longestLookup  = 3
	shortestLookup = 2
)

// draft returns tokens that may follow the text and a chosen token: those that followed the last
// occurrence of the same tokens.
func (g *generation) draft(id int) []int {
	n := min(g.o.Lookup, g.step()-1, g.model.info.Context-len(g.tokens)-1)
	if g.o.MaxTokens > 0 {
		n = min(n, g.o.MaxTokens-g.stats.Generated-1)
	}
	if n <= 0 || !g.model.info.TakesDrafts() {
		return nil
	}
	text := g.tokens
	for length := longestLookup - 1; length >= shortestLookup-1; length-- {
		if length >= len(text) {
			continue
		}
		end := text[len(text)-length:]
		for at := len(text) - length - 1; at >= 0; at-- {
			if next := at + length; text[next] == id && slices.Equal(text[at:next], end) {
				return text[next+1 : min(next+1+n, len(text))]
			}
		}
	}
	return nil
}
