package grammar

import (
	"slices"
	"unicode/utf8"
)

// lengths are the largest characters of one to four bytes; in between, those before and the last of the surrogates, which are none.
var lengths = []rune{0x7f, 0x7ff, 0xd7ff, 0xdfff, 0xffff, utf8.MaxRune}

// characters is a character in UTF-8 of one of several ranges, which are pairs of the first and the last one. It is nil if there
// is none.
func characters(ranges []rune) Part {
	if len(inUTF8(ranges[:min(len(ranges), 4)])) == 0 && len(inUTF8(ranges)) == 0 {
		return nil
	}
	return func(b *Builder, next int32) int32 {
		if b.err != nil { // a pattern can have a thousand classes of hundreds of ranges each
			return next
		}
		return Alt(inUTF8(ranges)...)(b, next)
	}
}

// Except is a character that a text does not have.
func Except(text string) Part {
	list := []rune(text)
	slices.Sort(list)
	var ranges []rune
	for _, c := range list {
		ranges = append(ranges, c, c)
	}
	return characters(others(ranges))
}

// inUTF8 returns the characters of ranges; there are none between surrogates.
func inUTF8(ranges []rune) (list []Part) {
	for i := 0; i+1 < len(ranges); i += 2 {
		low, high := max(ranges[i], 0), ranges[i+1]
		for _, most := range lengths {
			end := min(most, high)
			if low <= end && most != 0xdfff {
				list = append(list, utf8Bytes.sameLength(string(low), string(end)))
			}
			low = max(low, most+1)
		}
	}
	return list
}

// others returns the ranges of the characters that sorted ranges leave out.
func others(ranges []rune) (list []rune) {
	next := rune(0)
	for i := 0; i+1 < len(ranges); i += 2 {
		if ranges[i] > next {
			list = append(list, next, ranges[i]-1)
		}
		next = max(next, ranges[i+1]+1)
	}
	if next <= utf8.MaxRune {
		list = append(list, next, utf8.MaxRune)
	}
	return list
}
