package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Bodies of loops for NEON several times over, line by line: each copy has registers of its own for what it works with, and
// all have constants in common, and what goes from a block to the next, such as a sum.

// copies has the registers of the first copy by their names in the body, and how many copies there are: the others' follow.
type copies struct {
	n     int
	first map[int]int
}

// accumulating are the instructions whose result depends on what its register was. V is that of the assembler's.
var accumulating = []string{"BIT", "BSL", "BIF", "MLS", "SDOT", "SADALP", "SMLAL", "SMLAL2", "VFMLA", "VFMLS"}

var registerText = regexp.MustCompile(`\b[VF](\d+)\b`)

// unrolled finds registers for as many copies of a body as there may be, up to most. Operands are in the first registers, the
// result in register out; kept is text behind the loop.
func unrolled(body string, operands, out, most int, kept string) copies {
	working, used := roles(body, operands)
	for _, m := range registerText.FindAllStringSubmatch(expandedPseudo(kept), -1) {
		r, _ := strconv.Atoi(m[1])
		used[r] = true
	}
	for _, m := range regexp.MustCompile(`\b(\d+)[,)]`).FindAllStringSubmatch(kept, -1) {
		r, _ := strconv.Atoi(m[1])
		used[r] = true
	}
	if !slices.Contains(working, out) {
		used[out] = true
	}
	for _, r := range working {
		delete(used, r)
	}
	for n := most; n > 1; n /= 2 {
		if c, ok := assigned(working, used, n); ok {
			return c
		}
	}
	return copies{n: 1}
}

// assigned gives every working register n registers next to each other.
func assigned(working []int, used map[int]bool, n int) (copies, bool) {
	c, free := copies{n, map[int]int{}}, 0
	for _, r := range working {
		at := -1
		for from := free; from+n <= 32 && at < 0; from++ {
			if at = from; slices.ContainsFunc(sequence(from, n), func(r int) bool { return used[r] }) {
				at = -1
			}
		}
		if at < 0 {
			return copies{}, false
		}
		c.first[r], free = at, 0
		used = withRange(used, at, n)
	}
	return c, true
}

func sequence(from, n int) (list []int) {
	for i := range n {
		list = append(list, from+i)
	}
	return list
}

// withRange is a set and n registers more.
func withRange(used map[int]bool, from, n int) map[int]bool {
	all := make(map[int]bool, len(used)+n)
	for r := range used {
		all[r] = true
	}
	for _, r := range sequence(from, n) {
		all[r] = true
	}
	return all
}

// roles are the registers that a body works with, those of its operands first, and all others that it reads.
func roles(body string, operands int) (working []int, used map[int]bool) {
	working, used = sequence(0, operands), map[int]bool{}
	for line := range strings.Lines(body) {
		reads, writes := accesses(strings.TrimSpace(line))
		for _, r := range reads {
			if !slices.Contains(working, r) {
				used[r] = true
			}
		}
		for _, r := range writes {
			switch {
			case used[r] && !slices.Contains(reads, r):
				panic(fmt.Sprintf("V%d is read before it is set: %s", r, line))
			case !used[r] && !slices.Contains(working, r):
				working = append(working, r)
			}
		}
	}
	return working, used
}

// accesses are the registers that an instruction reads and writes: the first one in OP(d, n, m), the last one of the assembler's.
func accesses(line string) (reads, writes []int) {
	op, _, _ := strings.Cut(line, " ")
	var list []int
	if m := wordText.FindStringSubmatch(line); m != nil {
		op = m[1]
		for _, text := range m[2:] {
			if r, err := strconv.Atoi(text); err == nil {
				list = append(list, r)
			}
		}
		list = append(list[1:], list[0])
	} else {
		for _, m := range registerText.FindAllStringSubmatch(line, -1) {
			r, _ := strconv.Atoi(m[1])
			list = append(list, r)
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	last := len(list) - 1
	switch reads, writes = list[:last], list[last:]; {
	case slices.Contains(accumulating, op):
		reads = list
	case op == "VEOR" && list[0] == list[1] && list[1] == list[2]: // 0, whatever it was
		reads = nil
	}
	return reads, writes
}

// registers are those of a register of the body in each copy.
func (c copies) registers(r int) []int {
	if first, ok := c.first[r]; ok {
		return sequence(first, c.n)
	}
	return slices.Repeat([]int{r}, c.n)
}

// list are those as words, where they are next to each other.
func (c copies) list(r int) (text string, ok bool) {
	all := c.registers(r)
	return registers(all[0], c.n), c.n == 1 || all[1] == all[0]+1
}

// body is the body in every copy. Constants that it loads one after another are loaded once.
func (c copies) body(text string) string {
	var b strings.Builder
	for line := range strings.Lines(lines(expandedPseudo(text))) {
		for i := range c.n {
			if i > 0 && strings.HasPrefix(line, "TABLE") {
				break
			}
			if m := registerText.FindStringSubmatch(line); i > 0 && strings.HasPrefix(line, "VLD1R.P 4(R10)") {
				r, _ := strconv.Atoi(m[1])
				b.WriteString(moved(fmt.Sprint(c.registers(r)[0]), fmt.Sprint(c.registers(r)[i])))
				continue
			}
			b.WriteString(c.renamed(line, i))
		}
	}
	return b.String()
}

var numberText = regexp.MustCompile(`\d+`)

// renamed is an instruction of a copy.
func (c copies) renamed(line string, copy int) string {
	rename := func(text string) string {
		r, _ := strconv.Atoi(text)
		return fmt.Sprint(c.registers(r)[copy])
	}
	if m := wordText.FindStringSubmatchIndex(strings.TrimSpace(line)); m != nil {
		op, list, _ := strings.Cut(line, "(")
		return op + "(" + numberText.ReplaceAllStringFunc(list, rename)
	}
	return registerText.ReplaceAllStringFunc(line, func(text string) string { return text[:1] + rename(text[1:]) })
}
