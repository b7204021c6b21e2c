package grammar

import "slices"

// Vocabulary is the text of tokens in the order of their bytes.
type Vocabulary struct {
	texts  []string
	ids    []int32
	shared []int32 // bytes that a text has in common with the one before
}

// all returns the tokens with a text.
func (v *Vocabulary) all(s string) []int32 {
	first, _ := slices.BinarySearch(v.texts, s)
	end := first
	for end < len(v.texts) && v.texts[end] == s {
		end++
	}
	return v.ids[first:end]
}

// has reports whether a text is that of a token that is not excluded.
func (v *Vocabulary) has(s string, excluded []int) bool {
	return slices.ContainsFunc(v.all(s), func(id int32) bool {
		_, not := slices.BinarySearch(excluded, int(id))
		return !not
	})
}

// NewVocabulary returns a vocabulary. Tokens without text are left out.
func NewVocabulary(texts []string) *Vocabulary {
	v := &Vocabulary{}
	for id, s := range texts {
		if s != "" {
			v.ids = append(v.ids, int32(id))
		}
	}
	slices.SortFunc(v.ids, func(a, b int32) int {
		if texts[a] < texts[b] {
			return -1
		}
		if texts[a] > texts[b] {
			return 1
		}
		return 0
	})
	before := ""
	for _, id := range v.ids {
		s := texts[id]
		n := int32(0)
		for int(n) < min(len(s), len(before)) && s[n] == before[n] {
			n++
		}
		v.texts, v.shared = append(v.texts, s), append(v.shared, n)
		before = s
	}
	return v
}
