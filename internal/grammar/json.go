package grammar

// Numbers have at most so many digits, so that readers keep them exactly.
const (
	maxDigits   = 15
	maxFraction = 12
)

var digit = Between('0', '9')

// ofJSON returns the rules of JSON, which all schemas of a builder share.
func (b *Builder) ofJSON() *jsonParts {
	if b.json == nil {
		b.json = b.newJSON()
	}
	return b.json
}

func (b *Builder) newJSON() *jsonParts {
	j := &jsonParts{}
	j.space = b.Rule(Opt(Alt(Text(" "), Seq(Text("\n"), Repeat(Alt(Text(" "), Text("\t")), 0, 24)))))
	j.char = b.Rule(charPart())
	j.str = b.Rule(Seq(Text(`"`), Many(j.char), Text(`"`)))
	j.integer = b.Rule(Seq(Opt(Text("-")), naturals()))
	j.further[0] = Seq()
	for n := 1; n < len(j.further); n++ {
		j.further[n] = b.Rule(Opt(Seq(digit, j.further[n-1])))
	}
	exponent := Seq(Alt(Text("e"), Text("E")), Opt(Alt(Text("+"), Text("-"))), digit, Opt(digit))
	j.number = b.Rule(Seq(Opt(Text("-")), naturals(), Opt(Seq(Text("."), Repeat(digit, 1, maxFraction))), Opt(exponent)))
	value, object, list := b.Declare(), b.Declare(), b.Declare()
	j.any, j.object, j.list = Call(value), Call(object), Call(list)
	member := b.Rule(Seq(j.str, Text(":"), j.space, j.any))
	b.Define(object, j.enclosed("{", member, "}", 0, -1))
	b.Define(list, j.enclosed("[", j.any, "]", 0, -1))
	b.Define(value, Alt(j.object, j.list, j.str, j.number, Text("true"), Text("false"), Text("null")))
	return j
}

func naturals() Part { return Alt(Text("0"), Seq(Between('1', '9'), Repeat(digit, 0, maxDigits-1))) }

// enclosed is a list of least to most parts between brackets, with commas.
func (j *jsonParts) enclosed(open string, p Part, end string, least, most int) Part {
	if most == 0 {
		return Seq(Text(open), j.space, Text(end))
	}
	further := Repeat(Seq(Text(","), j.space, p), max(least-1, 0), most-1)
	if most < 0 {
		further = Repeat(Seq(Text(","), j.space, p), max(least-1, 0), -1)
	}
	inner := Seq(j.space, p, further)
	if least == 0 {
		inner = Opt(inner)
	}
	return Seq(Text(open), inner, j.space, Text(end))
}

// charPart is a character in a string: valid UTF-8, or an escape.
func charPart() Part {
	next := Between(0x80, 0xbf)
	hex := Alt(digit, Between('a', 'f'), Between('A', 'F'))
	surrogate := Seq(Alt(Text("d"), Text("D")), Between('0', '7'), hex, hex)
	unicode := Alt(surrogate, Seq(Alt(digit, Between('a', 'c'), Between('A', 'C'), Between('e', 'f'), Between('E', 'F')), hex, hex, hex))
	escape := Alt(Text(`"`), Text(`\`), Text("/"), Text("b"), Text("f"), Text("n"), Text("r"), Text("t"), Seq(Text("u"), unicode))
	return Alt(
		Between(0x20, '"'-1), Between('"'+1, '\\'-1), Between('\\'+1, 0x7f), Seq(Text(`\`), escape),
		Seq(Between(0xc2, 0xdf), next),
		Seq(Text("\xe0"), Between(0xa0, 0xbf), next), Seq(Between(0xe1, 0xec), next, next),
		Seq(Text("\xed"), Between(0x80, 0x9f), next), Seq(Between(0xee, 0xef), next, next),
		Seq(Text("\xf0"), Between(0x90, 0xbf), next, next), Seq(Between(0xf1, 0xf3), next, next, next),
		Seq(Text("\xf4"), Between(0x80, 0x8f), next, next))
}
