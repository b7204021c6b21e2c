// Package lazy makes what few processes use when it is first used: all of a program's packages start in each of its processes.
package lazy

import (
	"regexp"
	"sync"
)

// Pattern returns a function that returns a regular expression. It panics if the text is none.
func Pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
