package tokenizer

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"flag"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "rewrite testdata/precompiled.json")

// trie writes double array tries in the format of darts-clone.
type trie struct {
	units []uint32
	taken []bool
	far   bool // children are far from their parent, as in large tries
}

// charsmapOf returns a charsmap in the format of SentencePiece files.
func charsmapOf(rules map[string]string, far bool) []byte {
	keys := slices.Sorted(maps.Keys(rules))
	var texts []byte
	values := make([]uint32, len(keys))
	for i, k := range keys {
		values[i] = uint32(len(texts))
		texts = append(append(texts, rules[k]...), 0)
	}
	t := &trie{far: far}
	t.reserve(256)
	t.taken[0] = true
	t.fill(0, keys, values, 0)
	b := binary.LittleEndian.AppendUint32(nil, uint32(4*len(t.units)))
	for _, unit := range t.units {
		b = binary.LittleEndian.AppendUint32(b, unit)
	}
	return append(b, texts...)
}

func (t *trie) reserve(n int) {
	for len(t.units) < n {
		t.units, t.taken = append(t.units, 0x80), append(t.taken, false) // a unit with a label that is not its own
	}
}

// fill writes the children of a node: the keys have depth bytes in common.
func (t *trie) fill(node int, keys []string, values []uint32, depth int) {
	var labels []byte
	for _, k := range keys {
		label := byte(0) // the value
		if len(k) > depth {
			label = k[depth]
		}
		if n := len(labels); n == 0 || labels[n-1] != label {
			labels = append(labels, label)
		}
	}
	base := t.place(node, labels)
	distance := uint32(node ^ base)
	if distance < 1<<21 {
		t.units[node] |= distance << 10
	} else {
		t.units[node] |= distance<<2 | 1<<9
	}
	for len(keys) > 0 && len(keys[0]) == depth {
		t.units[node] |= 1 << 8
		t.units[base] = values[0] | 1<<31
		keys, values = keys[1:], values[1:]
	}
	for len(keys) > 0 {
		label := keys[0][depth]
		n := slices.IndexFunc(keys, func(k string) bool { return k[depth] != label })
		if n < 0 {
			n = len(keys)
		}
		child := base ^ int(label)
		t.units[child] = uint32(label)
		t.fill(child, keys[:n], values[:n], depth+1)
		keys, values = keys[n:], values[n:]
	}
}

// place finds free units for the children of a node, and reserves them.
func (t *trie) place(node int, labels []byte) int {
	base, step := 1, 1
	if t.far { // the format has large distances only in steps of 256
		base, step = node^1<<21, 256
	}
	for ; ; base += step {
		t.reserve((base | 255) + 1)
		if !slices.ContainsFunc(labels, func(c byte) bool { return t.taken[base^int(c)] }) {
			break
		}
	}
	for _, c := range labels {
		t.taken[base^int(c)] = true
	}
	return base
}

// rules are replacements like those of SentencePiece's nmt_nfkc.
func rules() map[string]string {
	m := map[string]string{
		"\t": " ", "\n": " ", "\r": " ", "\r\n": "  ", "\x01": "", "\x7F": "", "\u00A0": " ", "\u3000": " ", "\u200B": " ", "\u00AD": "",
		"\uFB01": "fi", "\uFB02": "fl", "½": "1\u20442", "²": "2", "™": "TM", "…": "...", "Å": "Å", "e\u0301": "é", "a\u0300": "à",
		"o\u0308\u0304": "ȫ", "o\u0308": "ö", "\uFDFA": "صلى الله عليه وسلم", "ｶ": "カ", "ｶﾞ": "ガ", "\u1100\u1161": "가", "\u1100\u1161\u11A8": "각",
		"か\u3099": "が", "㍿": "株式会社", "\u0600": "#", "\U0001D400": "A", "Ⅳ": "IV", "ſ": "s", "\u0301": "´", "ab\u0301": "?", "中\u0301": "!",
	}
	for c := rune('！'); c <= '～'; c++ {
		m[string(c)] = string(c - '！' + '!')
	}
	return m
}

// A charsmap gives the replacement of each rule, of the longest and of the shortest of the rules that begin alike.
func TestCharsmap(t *testing.T) {
	all := rules()
	for _, far := range []bool{false, true} {
		c, err := parseCharsmap(charsmapOf(all, far), "table")
		if err != nil {
			t.Fatal(err)
		}
		for k := range all {
			begins := slices.DeleteFunc(slices.Collect(maps.Keys(all)), func(other string) bool { return !strings.HasPrefix(k, other) })
			shortest := slices.MinFunc(begins, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
			var b strings.Builder
			if !(precompiled{c}).replace(&b, k+"x") || b.String() != all[shortest] {
				t.Errorf("%q: got %q, want %q", k, &b, all[shortest])
			}
			if out, n, ok := c.longest(k + "x"); !ok || n != len(k) || out != all[k] {
				t.Errorf("%q: got %q of %d bytes, %v, want %q of %d", k, out, n, ok, all[k], len(k))
			}
		}
		if _, _, ok := c.longest("x"); ok {
			t.Error("a replacement of x")
		}
	}
}

// The charsmap of testdata/precompiled.json has these rules; -update writes it.
func TestCharsmapOfFile(t *testing.T) {
	const name = "precompiled.json"
	want := base64.StdEncoding.EncodeToString(charsmapOf(rules(), false))
	var doc struct {
		Normalizer struct {
			Normalizers []struct {
				Charsmap string `json:"precompiled_charsmap"`
			}
		}
	}
	if err := json.Unmarshal(content(t, name), &doc); err != nil {
		t.Fatal(err)
	}
	got := doc.Normalizer.Normalizers[0].Charsmap
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("%s has another charsmap (go test -run TestCharsmapOfFile -update writes it; its vectors are then wrong)", name)
	}
	data := strings.Replace(string(content(t, name)), `"precompiled_charsmap":"`+got+`"`, `"precompiled_charsmap":"`+want+`"`, 1)
	if err := os.WriteFile(filepath.Join("testdata", name), []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A grapheme cluster of less than six bytes is replaced together with the marks in it, and with the first rule that it begins
// with, as in Hugging Face's library.
func TestPrecompiled(t *testing.T) {
	table, err := parseCharsmap(charsmapOf(rules(), false), "table")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, want string }{
		{"", ""}, {"plain", "plain"}, {"e\u0301a\u0300", "éà"}, {"Ａ\u0301b", "Ab"}, {"Ａ\u0301\u0302b", "A´\u0302b"}, {"a\r\nb", "a b"}, {"a\r\n\nb", "a  b"},
		{"\u1100\u1161\u11A8", "\u1100\u1161\u11A8"}, {"ab\u0301", "ab´"}, {"x\u0301\u0301\u0301", "x´´´"}, {"中\u0301", "!"}, {"\u06001", "#"},
		{"\u00AD", ""}, {"e\u0301\u00ADe", "ée"}, {"\U0001D400\u20DD", "A\u20DD"},
	} {
		if got := (precompiled{table}).normalize(c.text); got != c.want {
			t.Errorf("%+q: got %+q, want %+q", c.text, got, c.want)
		}
	}
}

// The normalizers without a table, as Hugging Face's library has them.
func TestOtherNormalizers(t *testing.T) {
	for _, c := range []struct{ normalizer, text, want string }{
		{`{"type":"Nmt"}`, "a\tb\x01c\u0085d", "a bc\u0085d"},
		{`{"type":"Nmt"}`, "\u200B\uFEFF\uFFFDx\u2581y\u1680z", "   x y z"},
		{`{"type":"Nmt"}`, "\v\x1F\x00!", "\x00!"},
		{`{"type":"StripAccents"}`, "e\u0301\u093F\u20DD!é", "e!é"},
		{`{"type":"Replace","pattern":{"Regex":" {2,}"},"content":"$1"}`, "  a b   c ", "$1a b$1c "},
		{`{"type":"Replace","pattern":{"Regex":"a|b"},"content":""}`, "xabcab", "xc"},
	} {
		tok, err := Parse(edit(t, "unigram.json", func(doc map[string]any) { doc["normalizer"] = json.RawMessage(c.normalizer) }))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := tok.(*hugging).normalize(c.text, maxText); err != nil || got != c.want {
			t.Errorf("%s: %+q: got %+q, %v, want %+q", c.normalizer, c.text, got, err, c.want)
		}
	}
}

// Tables of random units neither fail nor give other than UTF-8, and results that would be too long are errors.
func TestHostileCharsmap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	texts := []string{strings.Join(slices.Sorted(maps.Keys(rules())), "x"), strings.Repeat("ä\u0301", 100), "\x00\x00a"}
	for range 2000 {
		good := charsmapOf(rules(), false)
		for range 1 + r.IntN(200) {
			good[r.IntN(len(good))] = byte(r.Uint32())
		}
		good[len(good)-1] = 0
		step, err := readPrecompiled(precompiledJSON(good), "normalizer")
		if err != nil {
			checkError(t, err)
			continue
		}
		for _, text := range texts {
			if !utf8.ValidString(step(text)) {
				t.Fatalf("the result for %q is not UTF-8", text)
			}
		}
	}
	long := charsmapOf(map[string]string{"a": strings.Repeat("b", maxPiece)}, false)
	tok, err := Parse(edit(t, "precompiled.json", func(doc map[string]any) { doc["normalizer"] = precompiledJSON(long) }))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tok.Encode(strings.Repeat("a", maxText), false); err == nil || !strings.Contains(err.Error(), "normalized text is longer") {
		t.Errorf("got %v", err)
	}
}

// precompiledJSON returns the normalizer of a tokenizer.json.
func precompiledJSON(table []byte) json.RawMessage {
	data, _ := json.Marshal(map[string]any{"type": "Precompiled", "precompiled_charsmap": table}) // cannot fail
	return data
}
