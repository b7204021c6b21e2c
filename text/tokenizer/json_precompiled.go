package tokenizer

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

// precompiled applies the charsmap of a SentencePiece model as Hugging Face's library does, whose results differ from those
// of SentencePiece: it looks up each grapheme cluster, then each of its characters.
type precompiled struct{ *charsmap }

// maxCluster is the length in bytes from which the library looks up only the characters of a grapheme cluster.
const maxCluster = 6

func readPrecompiled(data json.RawMessage, place string) (func(string) string, error) {
	var p struct {
		Type     string
		Charsmap []byte `json:"precompiled_charsmap"` // in base64
	}
	if err := decode(data, place, &p); err != nil {
		return nil, err
	}
	place += ".precompiled_charsmap"
	table, err := parseCharsmap(p.Charsmap, place)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(table.texts) {
		return nil, malformed(place, "the texts are not UTF-8")
	}
	return precompiled{table}.normalize, nil
}

// normalize ends with a text that is too long as soon as the result is.
func (p precompiled) normalize(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for clusters := graphemes.FromString(s); clusters.Next() && b.Len() <= maxText; {
		cluster := clusters.Value()
		if len(cluster) < maxCluster && p.replace(&b, cluster) {
			continue
		}
		for _, r := range cluster {
			if char := string(r); !p.replace(&b, char) {
				b.WriteString(char)
			}
		}
	}
	return b.String()
}

// replace writes the replacement of the shortest known prefix of a text, instead of the text. A replacement that begins
// within a character, which no correct file contains, does not count as one.
func (p precompiled) replace(b *strings.Builder, s string) (replaced bool) {
	p.prefixes(s, func(_, offset int) bool {
		if utf8.RuneStart(p.texts[offset]) {
			b.WriteString(p.text(offset))
			replaced = true
		}
		return false
	})
	return replaced
}
