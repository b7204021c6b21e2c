package tokenizer

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ranksOf returns texts for a family: the bytes, then joined pairs of earlier texts.
func ranksOf(n int) []string {
	random := rand.New(rand.NewPCG(uint64(n), 3))
	texts := make([]string, 0, n)
	seen := make(map[string]bool)
	add := func(s string) {
		if !seen[s] {
			seen[s] = true
			texts = append(texts, s)
		}
	}
	for b := range 256 {
		add(string([]byte{byte(b)}))
	}
	for _, word := range strings.Fields("the model reads a file and writes tokens don't isn't 日本語 привет  \n") {
		for i := 2; i <= len(word); i++ {
			add(word[:i])
			add(" " + word[:i-1])
		}
	}
	for len(texts) < n {
		low := random.IntN(min(len(texts), 4096))
		if s := texts[low] + texts[random.IntN(min(len(texts), 512))]; len(s) < 40 {
			add(s)
		}
	}
	return texts
}

func rankFile(texts []string, skip func(rank int) bool) []byte {
	var b bytes.Buffer
	rank := 0
	for _, text := range texts {
		for skip != nil && skip(rank) {
			rank++
		}
		fmt.Fprintf(&b, "%s %d\n", base64.StdEncoding.EncodeToString([]byte(text)), rank)
		rank++
	}
	return b.Bytes()
}

// naive merges the pair with the lowest rank, the leftmost of equal ones, until none is left, unless
// the word is a token.
func naive(ranks map[string]int, word string) (ids []int) {
	if id, ok := ranks[word]; ok {
		return []int{id}
	}
	var parts []string
	for i := range len(word) {
		parts = append(parts, word[i:i+1])
	}
	for {
		best, at := -1, -1
		for i := 0; i+1 < len(parts); i++ {
			if r, ok := ranks[parts[i]+parts[i+1]]; ok && (at < 0 || r < best) {
				best, at = r, i
			}
		}
		if at < 0 {
			break
		}
		parts = slices.Replace(parts, at, at+2, parts[at]+parts[at+1])
	}
	for _, p := range parts {
		ids = append(ids, ranks[p])
	}
	return ids
}

// words are the patterns of the families without the lookahead, which only decides about the last
// of several spaces: the texts of the test have no two spaces in a row.
var words = map[string]*regexp.Regexp{
	"gpt2":        regexp.MustCompile(strings.ReplaceAll(gpt2, `|\s+(?!\S)`, ``)),
	"p50k_base":   regexp.MustCompile(strings.ReplaceAll(gpt2, `|\s+(?!\S)`, ``)),
	"cl100k_base": regexp.MustCompile(strings.ReplaceAll(cl100k, `|\s+(?!\S)`, ``)),
	"llama3":      regexp.MustCompile(strings.ReplaceAll(cl100k, `|\s+(?!\S)`, ``)),
	"o200k_base":  regexp.MustCompile(strings.ReplaceAll(o200k, `|\s+(?!\S)`, ``)),
}

func TestTiktoken(t *testing.T) {
	for _, f := range families() {
		texts := ranksOf(f.ranks)
		var skip func(int) bool
		if f.name == "p50k_base" {
			skip = func(rank int) bool { return rank == 50256 }
		}
		tok, err := Parse(rankFile(texts, skip))
		if err != nil {
			t.Fatalf("%s: %v", f.name, err)
		}
		ranks := make(map[string]int)
		for i, text := range texts {
			if ranks[text] = i; f.name == "p50k_base" && i >= 50256 {
				ranks[text]++
			}
		}
		for _, text := range []string{
			"", "the model", "The models' tokens don't, isn't it?\nIT'S 12345 日本語", "привет\n\n{a: 1.5}", "a b c",
			"日本語日本語 x",
		} {
			var want []int
			for _, w := range words[f.name].FindAllString(text, -1) {
				want = append(want, naive(ranks, w)...)
			}
			got, err := tok.Encode(text, false)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %q: got %v, want %v, %v", f.name, text, got, want, err)
			}
			checkRoundTrip(t, tok, text)
		}
		checkFamily(t, tok, &f)
	}
}

func checkFamily(t *testing.T, tok Tokenizer, f *family) {
	t.Helper()
	for name, want := range f.special {
		ids, err := tok.Encode("a"+name+"b", true)
		if id, ok := tok.ID(name); err != nil || !ok || id != want || len(ids) != 3 || ids[1] != want {
			t.Errorf("%s: %s is %d, %v, want %d; ids %v, %v", f.name, name, id, ok, want, ids, err)
		}
		checkRoundTrip(t, tok, "a"+name)
	}
	if bos, ok := f.special[f.bos]; ok != (tok.BOS() >= 0) || ok && tok.BOS() != bos || len(tok.EOS()) == 0 {
		t.Errorf("%s: BOS %d, EOS %v", f.name, tok.BOS(), tok.EOS())
	}
	if _, err := tok.Encode("a\xffb", false); !errors.Is(err, ErrText) {
		t.Errorf("%s: invalid UTF-8: %v", f.name, err)
	}
}

func TestRejectedTiktoken(t *testing.T) {
	texts := ranksOf(50256)
	for _, c := range []struct {
		data []byte
		want string
	}{
		{rankFile(texts[:1000], nil), "1000 ranks"},
		{rankFile(append(slices.Clone(texts[:50255]), "the"), nil), "occurs twice"},
		{rankFile(append(slices.Clone(texts[1:]), strings.Repeat("q", 50)), nil), "byte 0"},
		{[]byte("IQ== 0\nIg==\n"), "line 2"},
		{[]byte("IQ== 0\nIg== 0\n"), "second text"},
		{[]byte("IQ== 0\nIg== 7\n"), "rank below"},
		{[]byte("IQ== 0\n*** 1\n"), "line 2"},
	} {
		_, err := Parse(c.data)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want an error with %q", err, c.want)
			continue
		}
		checkError(t, err)
	}
}
