package grammar

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// operations is the schema of an expression with an alternative for each operator, which begin alike.
func operations(operators string) string {
	var list []string
	for _, o := range operators {
		list = append(list, fmt.Sprintf(`{"type":"object","properties":{"l":{"$ref":"#/$defs/e"},"op":{"const":"%c"},"r":{"$ref":"#/$defs/e"}},
			"required":["l","op","r"]}`, o))
	}
	return `{"$defs":{"e":{"anyOf":[` + strings.Join(list, ",") + `,{"type":"integer"}]}},"$ref":"#/$defs/e"}`
}

// Alternatives that begin alike have as many positions at any depth as at the first one.
func TestAlike(t *testing.T) {
	const depth = 1000
	lists := `{"$defs":{"s":{"anyOf":[{"type":"array","items":{"$ref":"#/$defs/s"}},{"type":"array","items":{"$ref":"#/$defs/s"},"maxItems":3},
		{"type":"array","items":{"$ref":"#/$defs/s"},"minItems":2},{"type":"integer"}]}},"$ref":"#/$defs/s"}`
	for _, c := range []struct{ form, open, middle, end string }{
		{operations("+-*/"), `{"l":`, "7", `,"op":"*","r":1}`},
		{operations("abcdefghijklmnopqrstuvwxyz"), `{"l":`, "7", `,"op":"q","r":1}`},
		{lists, "[", "[]", "]"},
		{lists, "[1,", "2", "]"},
		{"root ::= s\ns ::= \"a\" | \"a\" s s | \"a\" s s s", "a", "a", "aa"},
		{"root ::= s\ns ::= \"(\" s \")\" | \"(\" s \")\"? | \"(\" s? | \"x\"", "(", "x", ")"},
		{"root ::= sum\nsum ::= product | product \"+\" sum\nproduct ::= unit | unit \"*\" product\nunit ::= \"(\" sum \")\" | \"n\"", "(", "n", "*n)+n"},
	} {
		build := func() (*Grammar, error) { return Schema([]byte(c.form)) }
		if c.form[0] != '{' {
			build = func() (*Grammar, error) { return GBNF(c.form) }
		}
		g, err := build()
		if err != nil {
			t.Fatalf("%.60s: %v", c.form, err)
		}
		m := g.NewMatcher(singles, nil)
		follow := func(s string, n int) {
			for i := range n {
				if !m.Allows([]byte(s), 1<<30) || !m.Advance([]byte(s)) {
					t.Fatalf("%.60s: %q at %d is not accepted", c.form, s, i)
				}
				if i > 100 && len(m.now.configs) > 200 {
					t.Fatalf("%.60s: %d positions at %d", c.form, len(m.now.configs), i)
				}
			}
		}
		follow(c.open, depth)
		follow(c.middle, 1)
		follow(c.end, depth)
		if !m.Accepts() {
			t.Errorf("%.60s: no end", c.form)
		}
	}
}

// Forms that can be read in very many ways take bounded work, and an end stays within the tokens that are left.
func TestManyWays(t *testing.T) {
	g, err := GBNF("root ::= s\ns ::= \"a\" s s \"p\"? | \"b\" s \"q\"? | \"a\" s | \"b\" s \"p\"? \"q\"? | \"c\" | \"a\"")
	if err != nil {
		t.Fatal(err)
	}
	m, r := g.NewMatcher(singles, nil), rand.New(rand.NewPCG(1, 1))
	for left := 600; left > 0 && !m.Complete(); left-- {
		var ids []int
		m.Each(singles, left-1, func(id int) { ids = append(ids, id) })
		if len(ids) == 0 {
			break
		}
		if b := []byte{byte(ids[r.IntN(len(ids))])}; !m.Allows(b, left-1) || !m.Advance(b) {
			t.Fatalf("%q is listed, but not allowed", b)
		}
	}
	if !m.Accepts() {
		t.Error("no end")
	}
}

// plainly reports whether a grammar accepts a text: it follows each stack alone.
func plainly(g *Grammar, text string) bool {
	type position struct {
		at    int32
		stack string
	}
	expand := func(list []position) (next map[position]bool) {
		next = make(map[position]bool)
		for len(list) > 0 {
			p := list[len(list)-1]
			list = list[:len(list)-1]
			if next[p] || len(p.stack) > 30 {
				continue
			}
			next[p] = true
			switch n := &g.nodes[p.at]; n.kind {
			case splitNode:
				for _, k := range n.others {
					list = append(list, position{k, p.stack})
				}
			case callNode:
				list = append(list, position{g.rules[n.rule], p.stack + string(rune(n.next))})
			case endNode:
				if s := []rune(p.stack); len(s) > 0 {
					list = append(list, position{s[len(s)-1], string(s[:len(s)-1])})
				}
			}
		}
		return next
	}
	now := expand([]position{{g.rules[g.start], ""}})
	for _, c := range []byte(text) {
		var list []position
		for p := range now {
			if n := &g.nodes[p.at]; n.kind == bytesNode && n.low <= c && c <= n.high {
				list = append(list, position{n.next, p.stack})
			}
		}
		now = expand(list)
	}
	for p := range now {
		if g.nodes[p.at].kind == endNode && p.stack == "" {
			return true
		}
	}
	return false
}

// Texts of random grammars are accepted as if each stack was followed alone.
func TestRandomGrammars(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	var part func(depth int) string
	part = func(depth int) string {
		if depth == 0 || r.IntN(3) == 0 {
			return []string{`"a"`, `"b"`, "x", "y", "z", `"ab"`, "[ab]"}[r.IntN(7)]
		}
		a, b := part(depth-1), part(depth-1)
		return []string{a + " " + b, "(" + a + " | " + b + ")", "(" + a + ")?", "(" + a + ")*", "(" + a + " " + b + ")"}[r.IntN(5)]
	}
	done, accepted := 0, 0
	for done < 60 {
		text := "root ::= " + part(3)
		for _, name := range []string{"x", "y", "z"} {
			text += "\n" + name + " ::= " + part(3) + " | " + part(2)
		}
		g, err := GBNF(text)
		if err != nil {
			continue // it begins with itself, or has no finite text
		}
		done++
		for n := range 6 {
			for bits := range 1 << n {
				b := make([]byte, n)
				for i := range b {
					b[i] = "ab"[bits>>i&1]
				}
				got, want := matches(g, string(b)), plainly(g, string(b))
				if got != want {
					t.Fatalf("%s\n%q: got %v, want %v", text, b, got, want)
				}
				if want {
					accepted++
				}
			}
		}
	}
	if accepted < 300 {
		t.Errorf("%d texts are accepted", accepted)
	}
}

// The work for a rule with many callers at once grows with their number.
func TestManyCallers(t *testing.T) {
	const n = 5000
	for _, one := range []string{`{"type":"string"}`, `{"type":"array","items":{}}`} {
		g, err := Schema([]byte(`{"anyOf":[` + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		m := g.NewMatcher(singles, nil)
		for _, s := range []string{`["`, `"a`} {
			if m.Advance([]byte(s)) && m.edges > 20*n {
				t.Errorf("%s: %d edges after %q", one, m.edges, s)
			}
		}
	}
}
