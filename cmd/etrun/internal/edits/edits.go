// Package edits aligns two lists of lines.
package edits

// Pair is a line of either list; -1 means no line.
type Pair struct{ A, B int }

// maxCells limits the table of a comparison: for longer lists only the common beginning
// and end are aligned.
const maxCells = 1 << 24

// Align pairs the lines of a longest common subsequence, in order. The other lines of both
// lists are between them, those of a first.
func Align(a, b []string) (pairs []Pair) {
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		pairs = append(pairs, Pair{head, head})
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	pairs = append(pairs, middle(a[:len(a)-tail], b[:len(b)-tail], head)...)
	for i := tail; i > 0; i-- {
		pairs = append(pairs, Pair{len(a) - i, len(b) - i})
	}
	return pairs
}

// middle aligns the lines after the common head.
func middle(a, b []string, head int) (pairs []Pair) {
	n, m := len(a)-head, len(b)-head
	common := func(i, j int) int { return 0 }
	if n > 0 && m > 0 && n < maxCells/m {
		table := lengths(a[head:], b[head:])
		common = func(i, j int) int { return int(table[(i-head)*(m+1)+j-head]) }
	}
	i, j := head, head
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && common(i, j) > 0 && a[i] == b[j]:
			pairs = append(pairs, Pair{i, j})
			i, j = i+1, j+1
		case i < len(a) && (j == len(b) || common(i+1, j) >= common(i, j+1)):
			pairs = append(pairs, Pair{i, -1})
			i++
		default:
			pairs = append(pairs, Pair{-1, j})
			j++
		}
	}
	return pairs
}

// lengths returns the lengths of the longest common subsequences of the suffixes of a and b,
// in rows of len(b)+1.
func lengths(a, b []string) []int32 {
	row := len(b) + 1
	table := make([]int32, (len(a)+1)*row)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				table[i*row+j] = table[(i+1)*row+j+1] + 1
			} else {
				table[i*row+j] = max(table[(i+1)*row+j], table[i*row+j+1])
			}
		}
	}
	return table
}
