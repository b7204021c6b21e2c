package grammar

import (
	"encoding/binary"
	"errors"
	"regexp/syntax"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
)

// automaton makes parts of texts of characters that several conditions accept at once: regular expressions with look-ahead, lengths,
// multiples. Its spots are conditions on the rest of a text.
type automaton struct {
	spots   []spot
	classes [][]rune         // of characters: pairs of the first and the last one
	known   map[string]int32 // of classes
	letters [][]rune         // pairs of the characters that no class distinguishes
	in      [][]bool         // by class and letter
	units   int32            // the class of the first letter alone, behind those of the spots
	not     map[[2]int32]int32
	looks   []look // by spot
	now     int32  // of the looks
	cuts    int    // loops around nothing: these add nothing
	context bool   // there are conditions on the characters before
	failed  bool   // a complement is too large
	work    *int   // of the schema
}

// look is what was found at a spot.
type look struct {
	at   int32 // when
	busy bool
	list readings
	ends bool
}

// spotKind is the kind of a condition.
type spotKind uint8

const (
	spotEnd   spotKind = iota // the text ends
	spotAny                   // any text
	spotChar                  // a character of a class, then next
	spotSome                  // one of several
	spotAll                   // all of several
	spotNot                   // not next
	spotBegin                 // the text begins here, then next
	spotLast                  // the text ends here, and next accepts that
	spotEdge                  // a word begins or ends here, then next
	spotSame                  // no word begins or ends here, then next
)

type spot struct {
	kind  spotKind
	class int32
	next  int32
	list  []int32
}

// What is before a spot.
const (
	beforeNone int32 = iota // the text begins
	beforeOther
	beforeWord // a character of words
)

// Limits on automata.
const (
	maxSpots      = 60_000
	maxTextStates = 8_000
	maxTextEdges  = 40_000
	maxReadings   = 200       // of a state
	maxTextWork   = 8_000_000 // for all automata of a schema: a few seconds
)

var (
	errTooLarge = errors.New("too many states")
	wordRanges  = []rune{'0', '9', 'A', 'Z', '_', '_', 'a', 'z'}
	every       = []rune{0, utf8.MaxRune}
)

// The first spots of an automaton.
const (
	atEnd int32 = iota
	anyText
	wordSpot // which has the class of the characters of words
)

func newAutomaton(work *int) *automaton {
	a := &automaton{known: make(map[string]int32), not: make(map[[2]int32]int32), work: work}
	a.add(spot{kind: spotEnd})
	a.add(spot{kind: spotAny})
	a.char(wordRanges, atEnd)
	return a
}

// add adds a spot. Beyond the limit there is no further one: run reports that.
func (a *automaton) add(s spot) int32 {
	if len(a.spots) < maxSpots {
		a.spots = append(a.spots, s)
	}
	return int32(len(a.spots) - 1)
}

// char is a character of sorted ranges, then next.
func (a *automaton) char(ranges []rune, next int32) int32 {
	key := string(ranges) + "\x00" + string([]rune{rune(len(ranges))})
	id, ok := a.known[key]
	if !ok {
		id = int32(len(a.classes))
		a.known[key], a.classes = id, append(a.classes, ranges)
	}
	return a.add(spot{kind: spotChar, class: id, next: next})
}

func (a *automaton) some(list ...int32) int32 { return a.add(spot{kind: spotSome, list: list}) }
func (a *automaton) all(list ...int32) int32  { return a.add(spot{kind: spotAll, list: list}) }

// repeat is what one makes least to most times, then next; a negative most is no limit.
func (a *automaton) repeat(one func(next int32) int32, least, most int, next int32) int32 {
	at := next
	if most < 0 {
		at = a.some()
		a.spots[at].list = []int32{one(at), next}
	}
	for i := max(least, most); i > 0 && len(a.spots) < maxSpots; i-- {
		if at = one(at); i > least {
			at = a.some(at, next)
		}
	}
	return at
}

// expression is what a regular expression matches, then next. The reader of ECMA 262 makes groups with names of look-ahead.
func (a *automaton) expression(re *syntax.Regexp, next int32) int32 {
	sub := func(next int32) int32 { return a.expression(re.Sub[0], next) }
	condition := func(kind spotKind) int32 {
		a.context = a.context || kind != spotLast
		return a.add(spot{kind: kind, next: next})
	}
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range slices.Backward(re.Rune) {
			ranges := []rune{r, r}
			if re.Flags&syntax.FoldCase != 0 {
				ranges = bothCases(r)
			}
			next = a.char(ranges, next)
		}
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return a.char(rangesOf(re), next)
	case syntax.OpBeginText, syntax.OpBeginLine:
		return condition(spotBegin)
	case syntax.OpEndText, syntax.OpEndLine:
		return condition(spotLast)
	case syntax.OpWordBoundary:
		return condition(spotEdge)
	case syntax.OpNoWordBoundary:
		return condition(spotSame)
	case syntax.OpCapture:
		switch ahead := a.expression(re.Sub[0], anyText); {
		case strings.HasPrefix(re.Name, aheadName):
			return a.all(ahead, next)
		case strings.HasPrefix(re.Name, notAheadName):
			return a.all(a.add(spot{kind: spotNot, next: ahead}), next)
		}
		return sub(next)
	case syntax.OpConcat:
		for _, s := range slices.Backward(re.Sub) {
			next = a.expression(s, next)
		}
	case syntax.OpAlternate, syntax.OpNoMatch:
		list := make([]int32, len(re.Sub))
		for i, s := range re.Sub {
			list[i] = a.expression(s, next)
		}
		return a.some(list...)
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		counts := countsOf(re)
		return a.repeat(sub, counts[0], counts[1], next)
	}
	return next
}

// divide finds the letters when all classes are known.
func (a *automaton) divide() {
	*a.work -= 4 * len(a.spots)
	a.classes = append(a.classes, []rune{0, 0xd7ff, 0xe000, utf8.MaxRune}) // what is no character belongs to no letter
	var cuts []rune
	for _, ranges := range a.classes {
		for i := 0; i+1 < len(ranges); i += 2 {
			cuts = append(cuts, ranges[i], ranges[i+1]+1)
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	signs := make([][]byte, len(cuts)) // of the characters from one cut to the next: the classes that have them
	for id, ranges := range a.classes {
		for i := 0; i+1 < len(ranges); i += 2 {
			from, _ := slices.BinarySearch(cuts, ranges[i])
			for ; cuts[from] <= ranges[i+1]; from++ {
				signs[from] = binary.LittleEndian.AppendUint16(signs[from], uint16(id))
			}
		}
	}
	letters := make(map[string]int)
	*a.work -= len(cuts) * (1 + len(a.classes)/16)
	a.in = make([][]bool, len(a.classes))
	for i, sign := range signs {
		if last := uint16(len(a.classes) - 1); len(sign) < 2 || binary.LittleEndian.Uint16(sign[len(sign)-2:]) != last {
			continue
		}
		n, ok := letters[string(sign)]
		if !ok {
			n = len(a.letters)
			letters[string(sign)], a.letters = n, append(a.letters, nil)
			for id := range a.in {
				a.in[id] = append(a.in[id], false)
			}
			for k := 0; k < len(sign); k += 2 {
				a.in[binary.LittleEndian.Uint16(sign[k:])][n] = true
			}
		}
		a.letters[n] = append(a.letters[n], cuts[i], cuts[i+1]-1)
	}
	a.units = int32(len(a.in))
	for n := range a.letters {
		one := make([]bool, len(a.letters))
		one[n] = true
		a.in = append(a.in, one)
	}
}

// readings are lists of spots: all of one list accept the rest of the text. A list without spots accepts any.
type readings [][]int32

// look calls f for a spot, unless it has been looked at now. It reports whether the look has the answer.
func (a *automaton) look(at int32, f func(s *spot, l *look)) *look {
	for len(a.looks) < len(a.spots) {
		a.looks = append(a.looks, look{})
	}
	l := &a.looks[at]
	switch {
	case l.busy, *a.work <= 0:
		a.cuts++
		return &look{}
	case l.at == a.now:
		return l
	}
	*a.work--
	cuts, found := a.cuts, look{}
	l.busy = true
	f(&a.spots[at], &found)
	l = &a.looks[at] // which can have moved
	if l.busy = false; a.cuts == cuts {
		found.at = a.now
		*l = found
	}
	return &found
}

// after returns what a spot demands of the text after a letter.
func (a *automaton) after(at int32, letter int, before int32) readings {
	return a.look(at, func(s *spot, l *look) { l.list = a.requires(*s, letter, before) }).list
}

func (a *automaton) requires(s spot, letter int, before int32) readings {
	switch s.kind {
	case spotAny:
		return readings{nil}
	case spotChar:
		if a.in[s.class][letter] {
			return reading(s.next)
		}
	case spotSome:
		var all readings
		for _, k := range s.list {
			all = append(all, a.after(k, letter, before)...)
		}
		*a.work -= len(all)
		return tidied(all)
	case spotAll:
		return a.afterAll(s.list, letter, before)
	case spotNot:
		return a.after(a.complement(s.next, before), letter, before)
	case spotEdge, spotSame:
		if edge := a.in[a.spots[wordSpot].class][letter] != (before == beforeWord); edge == (s.kind == spotEdge) {
			return a.after(s.next, letter, before)
		}
	case spotBegin:
		if before == beforeNone {
			return a.after(s.next, letter, before)
		}
	}
	return nil
}

// afterAll returns what all of several spots demand.
func (a *automaton) afterAll(list []int32, letter int, before int32) readings {
	all := readings{nil}
	for _, k := range list {
		if all = a.both(all, a.after(k, letter, before)); len(all) == 0 {
			break
		}
	}
	return all
}

func reading(at int32) readings {
	if at == anyText {
		return readings{nil}
	}
	return readings{{at}}
}

// both returns what satisfies one reading of each.
func (a *automaton) both(x, y readings) (list readings) {
	if *a.work -= len(x) * len(y); *a.work < 0 {
		return nil
	}
	for _, p := range x {
		for _, q := range y {
			both := slices.Concat(p, q)
			slices.Sort(both)
			list = append(list, slices.Compact(both))
		}
	}
	return tidied(list)
}

// tidied sorts readings, without those that demand what another one does, and more.
func tidied(list readings) readings {
	slices.SortFunc(list, func(p, q []int32) int {
		if len(p) != len(q) {
			return len(p) - len(q)
		}
		return slices.Compare(p, q)
	})
	list = slices.CompactFunc(list, slices.Equal)
	if n := len(list); n < 2 || n > maxReadings || len(list[0]) == len(list[n-1]) {
		return list
	}
	kept := list[:0:0]
	for _, p := range list {
		if !slices.ContainsFunc(kept, func(q []int32) bool { return within(q, p) }) {
			kept = append(kept, p)
		}
	}
	return kept
}

// within reports whether all of a sorted list are in another one.
func within(p, q []int32) bool {
	for _, x := range p {
		i, ok := slices.BinarySearch(q, x)
		if !ok {
			return false
		}
		q = q[i:]
	}
	return true
}

// ends reports whether the text can end at a spot.
func (a *automaton) ends(at int32, before int32) bool {
	return a.look(at, func(s *spot, l *look) { l.ends = a.endsAt(*s, before) }).ends
}

func (a *automaton) endsAt(s spot, before int32) bool {
	next := func(k int32) bool { return a.ends(k, before) }
	switch s.kind {
	case spotEnd, spotAny:
		return true
	case spotSome:
		return slices.ContainsFunc(s.list, next)
	case spotAll:
		return !slices.ContainsFunc(s.list, func(k int32) bool { return !next(k) })
	case spotNot:
		return !next(s.next)
	case spotEdge, spotSame:
		return (before == beforeWord) == (s.kind == spotEdge) && next(s.next)
	case spotBegin:
		return before == beforeNone && next(s.next)
	case spotLast:
		return next(s.next)
	}
	return false
}

// accepts reports whether the text can end after some that has these readings.
func (a *automaton) accepts(list readings, before int32) bool {
	a.now++
	return slices.ContainsFunc(list, func(p []int32) bool {
		return !slices.ContainsFunc(p, func(k int32) bool { return !a.ends(k, before) })
	})
}

// complement returns a spot of the texts that another one does not accept.
func (a *automaton) complement(at, before int32) int32 {
	if !a.context {
		before = beforeOther
	}
	key := [2]int32{at, before}
	if to, ok := a.not[key]; ok {
		return to
	}
	looks := a.looks // the spots have other looks in a text of its own
	a.looks = nil
	states, err := a.run(at, before)
	a.looks = looks
	a.now++
	if err != nil || len(a.spots)+len(states)*(1+len(a.letters)) > maxSpots {
		a.failed = true
		return atEnd
	}
	first := int32(len(a.spots))
	for range states {
		a.some()
	}
	for i, s := range states {
		var list []int32
		if !s.ends {
			list = append(list, atEnd)
		}
		for n, k := range s.next {
			to := anyText
			if k >= 0 {
				to = first + k
			}
			list = append(list, a.add(spot{kind: spotChar, class: a.units + int32(n), next: to}))
		}
		a.spots[first+int32(i)].list = list
	}
	a.not[key] = first
	return first
}

// joined returns pairs of characters as sorted ranges, those that overlap or touch as one.
func joined(pairs [][2]rune) (ranges []rune) {
	sort.Slice(pairs, func(i, k int) bool { return pairs[i][0] < pairs[k][0] })
	for _, p := range pairs {
		if n := len(ranges); n > 0 && p[0] <= ranges[n-1]+1 {
			ranges[n-1] = max(ranges[n-1], p[1])
		} else {
			ranges = append(ranges, p[0], p[1])
		}
	}
	return ranges
}

// copied is the texts of a rule of a builder, which is not recursive and of ASCII, then next.
func (a *automaton) copied(b *Builder, at, next int32, known map[[2]int32]int32) int32 {
	key := [2]int32{at, next}
	to, ok := known[key]
	if ok {
		return to
	}
	switch n := &b.nodes[at]; n.kind {
	case bytesNode:
		to = a.char([]rune{rune(n.low), rune(n.high)}, a.copied(b, n.next, next, known))
	case callNode:
		to = a.copied(b, b.rules[n.rule], a.copied(b, n.next, next, known), known)
	case splitNode:
		to = a.some()
		for _, k := range n.others {
			k = a.copied(b, k, next, known)
			a.spots[to].list = append(a.spots[to].list, k)
		}
	case endNode:
		to = next
	}
	known[key] = to
	return to
}
