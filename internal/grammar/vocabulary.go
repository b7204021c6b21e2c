package grammar

import "slices"

// Vocabulary is the text of tokens in the order of their bytes.
type Vocabulary struct {
	texts  []string
	ids    []int32
	shared []int32 // bytes that a text has in common with the one before
}

// has reports whether a text is that of a token that is not excluded.
func (v *Vocabulary) has(s string, excluded []int) bool {
	for i, _ := slices.BinarySearch(v.texts, s); i < len(v.texts) && v.texts[i] == s; i++ {
		if _, not := slices.BinarySearch(excluded, int(v.ids[i])); !not {
			return true
		}
	}
	return false
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
