// Package nearest suggests names for misspelled ones.
package nearest

import "strings"

// maxName is the maximum length of compared names: names from files may have any length.
const maxName = 128

// Name returns the name with the smallest edit distance from name, empty if the distance
// exceeds a third of the length, rounded up. Names with the same text before the last dot, such as
// overloads of an operator, come before all others.
func Name(name string, names []string) string {
	base, _ := cutLast(name)
	best, shortest := "", (len(name)+2)/3+1
	for _, other := range names {
		d := distance(name, other)
		if otherBase, dotted := cutLast(other); dotted && base == otherBase {
			d -= 2 * maxName
		}
		if d < shortest {
			best, shortest = other, d
		}
	}
	return best
}

// Hint returns "; did you mean NAME?" with the nearest name, empty if none is near.
func Hint(name string, names []string) string {
	if other := Name(name, names); other != "" && name != "" {
		return "; did you mean " + other + "?"
	}
	return ""
}

func cutLast(name string) (base string, dotted bool) {
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		return name[:i], true
	}
	return name, false
}

// distance is the number of edits between two names, maxName if one is longer than that. Edits insert, remove or change
// a byte, or exchange two adjacent ones.
func distance(a, b string) int {
	if len(a) > maxName || len(b) > maxName {
		return maxName
	}
	var before []int // the row before the last one
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, row[j]+1, last[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
