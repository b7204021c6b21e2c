// Package nearest finds the name that somebody may have meant.
package nearest

import "strings"

// maxName bounds the names that are compared: those of files may be of any length.
const maxName = 128

// Name is the one of names that the fewest changes of single bytes lead to from name,
// empty where all need more than a third of its length. Names that share what stands
// before the last dot, as overloads of an operator do, are nearer than all others.
func Name(name string, names []string) string {
	base, _ := cutLast(name)
	best, least := "", len(name)/3+1
	for _, other := range names {
		d := distance(name, other)
		if otherBase, dotted := cutLast(other); dotted && base == otherBase {
			d -= 2 * maxName
		}
		if d < least {
			best, least = other, d
		}
	}
	return best
}

func cutLast(name string) (base string, dotted bool) {
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		return name[:i], true
	}
	return name, false
}

// distance is the Levenshtein distance of two names, maxName where one is longer than that.
func distance(a, b string) int {
	if len(a) > maxName || len(b) > maxName {
		return maxName
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
