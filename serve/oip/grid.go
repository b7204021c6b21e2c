package oip

// grid reads the elements of a tensor from a value of JSON, which is known to be valid.
type grid struct {
	text  []byte
	at    int    // the next byte
	data  []byte // the elements
	put   int    // where the next element goes
	size  int
	parse func(dst, text []byte) bool
}

// read reads an array of all elements, flat or nested like the shape. It returns false if the value is no such array.
func (g *grid) read(shape []int) bool {
	if !g.delimiter('[') {
		return false
	}
	g.space()
	if g.text[g.at] == '[' && len(shape) > 1 {
		return g.nested(shape)
	}
	return g.row(len(g.data) / g.size)
}

// space skips white space. A delimiter follows, or a value.
func (g *grid) space() {
	for g.text[g.at] <= ' ' {
		g.at++
	}
}

// nested reads the inside of an array of the outermost dimension.
func (g *grid) nested(shape []int) bool {
	if len(shape) == 1 {
		return g.row(shape[0])
	}
	for i := range shape[0] {
		if i > 0 && !g.delimiter(',') || !g.delimiter('[') || !g.nested(shape[1:]) {
			return false
		}
	}
	return g.delimiter(']')
}

// delimiter reads a delimiter.
func (g *grid) delimiter(c byte) bool {
	g.space()
	if g.text[g.at] != c {
		return false
	}
	g.at++
	return true
}

// row reads n elements and the end of an array.
func (g *grid) row(n int) bool {
	if n > (len(g.data)-g.put)/g.size {
		return false
	}
	for i := range n {
		if i > 0 && !g.delimiter(',') {
			return false
		}
		g.space()
		end := g.at
		for isPlain[g.text[end]] {
			end++
		}
		if !g.parse(g.data[g.put:][:g.size], g.text[g.at:end]) {
			return false
		}
		g.at, g.put = end, g.put+g.size
	}
	return g.delimiter(']')
}

// isPlain are the bytes of numbers, true, false and null. Delimiters, strings and white space end them.
var isPlain = func() (set [256]bool) {
	for _, c := range "+-.0123456789abcdefghijklmnopqrstuvwxyzE" {
		set[c] = true
	}
	return set
}()
