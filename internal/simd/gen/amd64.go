package main

import (
	"fmt"
	"strings"
)

// Registers on amd64: CX counts blocks, AX elements. DI is dst, pointers are the
// operands, which are loaded into Y0, Y1 and so on; scalars fill registers up to Y15.

// align starts a loop at a fetch block: where a short loop lies across two, it takes up to
// twice as long.
const align = "PCALIGN $64\n"

var amd64Pointers = []string{"SI", "DX", "R8"}

// amd64Arguments loads what the frame holds.
func amd64Arguments(l *loop) string {
	f := l.frame()
	text := "MOVQ " + f.at("n") + ", CX\n"
	if l.kind.dst != "" {
		text += "MOVQ " + f.at("dst") + ", DI\n"
	}
	for i, o := range l.kind.operands {
		text += fmt.Sprintf("MOVQ %s, %s\n", f.at(o.name), amd64Pointers[i])
	}
	for i, s := range l.scalars {
		text += fmt.Sprintf("VBROADCASTSS %s, Y%d\n", f.at(s), 16-len(l.scalars)+i)
	}
	return text
}

// results names the result of a frame where code says RESULT.
func results(l *loop, text string) string {
	name, _, _ := strings.Cut(l.kind.result, " ")
	if name == "" {
		return text
	}
	return strings.ReplaceAll(text, "RESULT", l.frame().at(name))
}

// eachAMD64 is a loop over blocks of eight elements, one result for each.
func eachAMD64(l *loop) string {
	setup := ""
	if l.kind.dst == "uint8" {
		setup = "MOVQ $0x0101010101010101, BX\nMOVQ BX, X15"
	}
	head := lines(amd64Arguments(l))
	if l.amd64.pair != "" {
		head += wideAMD64(l)
	}
	head += lines(setup, l.amd64.setup, "XORQ AX, AX")
	tail := lines(results(l, l.amd64.finish), "VZEROUPPER", "RET")
	one := lines(block(l, 0), "ADDQ $8, AX", "DECQ CX", "JNZ loop")
	if !l.amd64.unroll {
		return head + align + "\nloop:\n" + one + tail
	}
	return head + lines("SUBQ $4, CX", "JLT rest", align) + "\nfour:\n" +
		lines(block(l, 0), block(l, 1), block(l, 2), block(l, 3), "ADDQ $32, AX", "SUBQ $4, CX", "JGE four") + "\nrest:\n" +
		lines("ADDQ $4, CX", "JEQ done") + "\nloop:\n" + one + "\ndone:\n" + tail
}

// block loads, computes and stores the i-th block from AX on.
func block(l *loop, i int) string {
	loads := ""
	for k, o := range l.kind.operands {
		if o.elem == "uint8" {
			loads += fmt.Sprintf("VPMOVZXBD %s(%s)(AX*1), Y%d\n", offset(8*i), amd64Pointers[k], k)
		} else {
			loads += fmt.Sprintf("VMOVUPS %s(%s)(AX*4), Y%d\n", offset(32*i), amd64Pointers[k], k)
		}
	}
	if l.kind.dst == "uint8" {
		return lines(loads, l.amd64.body, storeMask(l.amd64.invert, offset(8*i)))
	}
	return lines(loads, l.amd64.body, fmt.Sprintf("VMOVUPS Y%d, %s(DI)(AX*4)", l.amd64.out, offset(32*i)))
}

// offset is a displacement of n bytes.
func offset(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// storeMask makes bytes of 1 and 0 of the mask Y0.
func storeMask(invert bool, at string) string {
	and := "VPAND"
	if invert {
		and = "VPANDN"
	}
	return `
		VEXTRACTI128 $1, Y0, X1
		VPACKSSDW X1, X0, X0
		VPACKSSWB X0, X0, X0
		` + and + ` X15, X0, X0
		VMOVQ X0, ` + at + `(DI)(AX*1)`
}

// reduceAMD64 gathers blocks in Y0 to Y3, four at a time, and adds them up. In body,
// AT is the offset of a block, ACC its register of the four and TMP one that is free.
func reduceAMD64(l *loop) string {
	block := func(i int) string {
		return strings.NewReplacer("AT", fmt.Sprint(32*i), "ACC", fmt.Sprint("Y", i), "TMP", fmt.Sprint("Y", 4+i)).Replace(l.amd64.body)
	}
	step := func(blocks int) (text string) {
		for i := range l.kind.operands {
			text += fmt.Sprintf("ADDQ $%d, %s\n", 32*blocks, amd64Pointers[i])
		}
		return text
	}
	zero := "VXORPS Y0, Y0, Y0\nVXORPS Y1, Y1, Y1\nVXORPS Y2, Y2, Y2\nVXORPS Y3, Y3, Y3\n"
	sum := `
		VADDPS       Y1, Y0, Y0
		VADDPS       Y3, Y2, Y2
		VADDPS       Y2, Y0, Y0` + sumY0 + `
		VMOVSS       X0, RESULT`
	return lines(amd64Arguments(l), zero, align) + "\nfour:\n" +
		lines("SUBQ $4, CX", "JLT rest", block(0), block(1), block(2), block(3), step(4), "JMP four") + "\nrest:\n" +
		lines("ADDQ $4, CX", "JZ done") + "\none:\n" +
		lines(block(0), step(1), "DECQ CX", "JNZ one") + "\ndone:\n" +
		lines(results(l, sum), "VZEROUPPER", "RET")
}

// sumY0 adds up the lanes of Y0.
const sumY0 = `
	VEXTRACTF128 $1, Y0, X1
	VADDPS       X1, X0, X0
	VMOVHLPS     X0, X0, X1
	VADDPS       X1, X0, X0
	VMOVSHDUP    X0, X1
	VADDSS       X1, X0, X0
`

// rawAMD64 is a loop whose body is all of it.
func rawAMD64(l *loop) string {
	return lines(amd64Arguments(l)) + labelled(results(l, l.amd64.body)) + lines("VZEROUPPER", "RET")
}

// labelled is text with an empty line in front of labels.
func labelled(text string) string {
	var b strings.Builder
	for line := range strings.Lines(lines(text)) {
		if strings.HasSuffix(line, ":\n") {
			b.WriteByte('\n')
		}
		b.WriteString(line)
	}
	return b.String()
}

// convertAMD64 goes over blocks of eight elements, and over pairs of blocks where the
// processor has AVX-512.
func convertAMD64(l *loop) string {
	return lines(amd64Arguments(l), "XORQ AX, AX", "CMPB ·avx512(SB), $0", "JEQ single", "SUBQ $2, CX", "JLT rest", align) + "\npair:\n" +
		lines(l.amd64.pair, "ADDQ $16, AX", "SUBQ $2, CX", "JGE pair") + "\nrest:\n" +
		lines("ADDQ $2, CX", "JEQ done", align) + "\nsingle:\n" +
		lines(l.amd64.body, "ADDQ $8, AX", "DECQ CX", "JNZ single") + "\ndone:\n" +
		lines("VZEROUPPER", "RET")
}

// expanded writes polynomials out: HORNER p x c… is p = p·x + c for each constant.
func expanded(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "HORNER "); ok {
			f := strings.Fields(rest)
			line = ""
			for _, c := range f[2:] {
				suffix := ""
				if f[0][0] == 'Z' {
					suffix = ".BCST"
				}
				line += fmt.Sprintf("VFMADD213PS%s %s<>(SB), %s, %s\n", suffix, c, f[1], f[0])
			}
		}
		b.WriteString(line)
	}
	return b.String()
}

// amd64Constants are the lanes that text refers to.
func amd64Constants(text string) string {
	var b strings.Builder
	for _, c := range constants {
		if strings.Contains(text, " "+c.name+"<>(SB)") {
			fmt.Fprintf(&b, "LANES(%s, 0x%08x)\n", c.name, c.bits)
		}
	}
	if strings.Contains(text, " exp2Table<>") {
		b.WriteString(exp2Table())
	}
	return b.String()
}
