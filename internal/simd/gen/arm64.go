package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Registers on arm64: R0 counts blocks, R1 is dst, pointers are the operands, which are
// loaded into V0, V1 and so on; scalars lie in V8 and on.

var arm64Pointers = []string{"R2", "R3", "R5"}

// words are instructions on four lanes of 32 bits that the assembler does not know.
var words = map[string]uint32{
	"FADD": 0x4E20D400, "FSUB": 0x4EA0D400, "FMUL": 0x6E20DC00, "FDIV": 0x6E20FC00, "FMAX": 0x4E20F400, "FMIN": 0x4EA0F400,
	"FADDP": 0x6E20D400, "FMAXP": 0x6E20F400, "FMINP": 0x6EA0F400, "FSQRT": 0x6EA1F800, "FNEG": 0x6EA0F800, "FABS": 0x4EA0F800,
	"FRECPE": 0x4EA1D800, "FRECPS": 0x4E20FC00,
	"FRINTN": 0x4E218800, "FRINTM": 0x4E219800, "FRINTP": 0x4EA18800, "FRINTZ": 0x4EA19800,
	"FCVTNS": 0x4E21A800, "FCVTZS": 0x4EA1B800, "SCVTF": 0x4E21D800, "FCVTL": 0x0E217800, "FCVTN": 0x0E216800,
	"FCVTL_2": 0x4E217800, "FCVTN_2": 0x4E216800, "UXTL16": 0x2F10A400, "UXTL16_2": 0x6F10A400,
	"FCMEQ": 0x4E20E400, "FCMGE": 0x6E20E400, "FCMGT": 0x6EA0E400,
	"FCMEQ0": 0x4EA0D800, "FCMGE0": 0x6EA0C800, "FCMGT0": 0x4EA0C800, "FCMLT0": 0x4EA0E800,
	"CMEQ": 0x6EA08C00, "CMGT": 0x4EA03400, "CMGE": 0x4EA03C00, "CMEQ0": 0x4EA09800, "CMLT0": 0x4EA0A800, "CMEQ0_8": 0x0E209800,
	"SMAX": 0x4EA06400, "SMIN": 0x4EA06C00, "MUL": 0x4EA09C00, "ABS": 0x4EA0B800, "NEG": 0x6EA0B800, "NOT": 0x6E205800,
	"BSL": 0x6E601C00, "BIT": 0x6EA01C00, "BIF": 0x6EE01C00, "BIC": 0x4E601C00, "ORN": 0x4EE01C00,
	"SMULL": 0x0E20C000, "SMULL2": 0x4E20C000, "SADALP": 0x4E606800, "SADDLP8": 0x4E202800, "ADDP": 0x4EA0BC00, "SDOT": 0x4E809400,
	"SMLAL": 0x0E608000, "SMLAL2": 0x4E608000, "FMAXNM": 0x4E20C400, "FMINNM": 0x4EA0C400,
	"SXTL8_2": 0x4F08A400, "UXTL8": 0x2F08A400, "UXTL8_2": 0x6F08A400, "XTN16_2": 0x4E612800, "XTN8_2": 0x4E212800,
	"SQXTN16": 0x0E614800, "SQXTN16_2": 0x4E614800, "SQXTN8": 0x0E214800, "SQXTN8_2": 0x4E214800, "SQXTUN8": 0x2E212800, "SQXTUN8_2": 0x6E212800,
	"SQADD16": 0x4E600C00, "SUB16": 0x6E608400, "SXTL16_2": 0x4F10A400, "MLS": 0x6EA09400,
	"SMIN8": 0x4E206C00, "UMIN8": 0x6E206C00, "SMAX8": 0x4E206400, "UMAX8": 0x6E206400,
	"TBL4": 0x4E006000, "TBX4": 0x4E007000, // of four registers from the second one on
	"TBX1":  0x4E001000,
	"FMLA0": 0x4F801000, "FMLA1": 0x4FA01000, "FMLA2": 0x4F801800, "FMLA3": 0x4FA01800, // by a lane of the third register
	"SDOT0": 0x4F80E000, "SDOT1": 0x4FA0E000, "SDOT2": 0x4F80E800, "SDOT3": 0x4FA0E800,
	"SMMLA": 0x4E80A400,
	"UMAX":  0x6EA06400, "UMAXV": 0x6EB0A800,
	// of two lanes of 64 bits
	"FADD64": 0x4E60D400, "FSUB64": 0x4EE0D400, "FADDP64": 0x6E60D400, "FCVTL64": 0x0E617800, "FCVTL64_2": 0x4E617800,
	"FCVTN64": 0x0E616800, "FCVTN64_2": 0x4E616800,
	"SMLAL8": 0x0E208000, "SMLAL8_2": 0x4E208000, "SSHR4_8": 0x4F0C0400,
	"SSHLL4": 0x0F14A400, "SSHLL4_2": 0x4F14A400, "SHLL16": 0x2E613800, "SHLL16_2": 0x6E613800, // of 16 bits
	"SADDW": 0x0E601000, "SADDW2": 0x4E601000,
	"LDRQ":  0x3CE06800, // from R(n) + R(m)
	"SSHR1": 0x4F3F0400, "SSHR23": 0x4F290400, "XTN16": 0x0E612800, "XTN8": 0x0E212800, "SXTL8": 0x0F08A400, "SXTL16": 0x0F10A400, "SXTL32": 0x0F20A400, "SXTL32_2": 0x4F20A400,
}

var wordText = regexp.MustCompile(`^([A-Z0-9_]+)\((\d+)(?:, (\d+))?(?:, (\d+))?(?:, (\d+))?\)$`)

// pseudo are the generator's own instructions: COPY(d, n) is d = n, HORNER(d, a, x, c) is d = a·x + c,
// NEXT(d) loads the next constant from R10, and STEP(d, a, x) is HORNER with it.
var pseudo = map[string]func(registers []string) string{
	"COPY": func(r []string) string { return moved(r[1], r[0]) },
	"HORNER": func(r []string) string {
		return moved(r[3], r[0]) + "VFMLA V" + r[2] + ".S4, V" + r[1] + ".S4, V" + r[0] + ".S4\n"
	},
	"NEXT": func(r []string) string { return "VLD1R.P 4(R10), [V" + r[0] + ".S4]\n" },
	"STEP": func(r []string) string {
		return "VLD1R.P 4(R10), [V" + r[0] + ".S4]\nVFMLA V" + r[2] + ".S4, V" + r[1] + ".S4, V" + r[0] + ".S4\n"
	},
}

// expandedPseudo replaces the generator's own instructions.
func expandedPseudo(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if m := wordText.FindStringSubmatch(strings.TrimSpace(line)); m != nil && pseudo[m[1]] != nil {
			line = pseudo[m[1]](m[2:])
		}
		b.WriteString(line)
	}
	return b.String()
}

// encoded writes instructions of words as such: OP(d, n, m) with the numbers of the registers.
func encoded(text string) string {
	var b strings.Builder
	for line := range strings.Lines(expandedPseudo(text)) {
		if m := wordText.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			line = word(m[1], m[2:]) + "\n"
		}
		b.WriteString(line)
	}
	return b.String()
}

func word(op string, registers []string) string {
	bits, ok := words[op]
	if !ok {
		panic("no instruction " + op)
	}
	var names []string
	if registers[3] != "" {
		panic(op + ": four registers")
	}
	for i, shift := range []int{0, 5, 16} {
		if registers[i] == "" {
			continue
		}
		r, err := strconv.Atoi(registers[i])
		if err != nil || r > 31 {
			panic(op + ": register " + registers[i])
		}
		bits |= uint32(r) << shift
		names = append(names, fmt.Sprint("V", r))
	}
	return fmt.Sprintf("WORD $0x%08X // %s %s", bits, op, strings.Join(names, ", "))
}

// moved copies a register.
func moved(from, to string) string {
	return fmt.Sprintf("VORR V%s.B16, V%[1]s.B16, V%s.B16\n", from, to)
}

// constant makes all lanes of a register the number of that name.
func constant(name string, to int) string {
	return fmt.Sprintf("MOVD $0x%08x, R6\nVDUP R6, V%d.S4\n", bitsOf(name), to)
}

// loaded brings constants into registers, each in four lanes, from the first one on.
func loaded(first int, names ...string) string {
	text := "TABLE R9 " + strings.Join(names, " ") + "\n"
	for i := range names {
		text += fmt.Sprintf("VLD1R.P 4(R9), [V%d.S4]\n", first+i)
	}
	return text
}

// arm64Arguments loads what the frame holds.
func arm64Arguments(l *loop) string {
	f := l.frame()
	text := "MOVD " + f.at("n") + ", R0\n"
	if l.kind.dst != "" {
		text += "MOVD " + f.at("dst") + ", R1\n"
	}
	for i, o := range l.kind.operands {
		text += fmt.Sprintf("MOVD %s, %s\n", f.at(o.name), arm64Pointers[i])
	}
	for i, s := range l.scalars {
		text += fmt.Sprintf("MOVWU %s, R6\nVDUP R6, V%d.S4\n", f.at(s), 8+i)
	}
	return text
}

// eachARM64 is a loop over blocks of four elements, one result for each: of several blocks at a time, and of one for the rest.
func eachARM64(l *loop) string {
	c := unrolled(lines(expandedPseudo(l.arm64.body)), len(l.kind.operands), l.arm64.out, 4, l.arm64.finish)
	one := neonBlock(l, copies{n: 1}) + "SUBS $1, R0\nBNE loop\n"
	before, behind := lines(arm64Arguments(l), l.arm64.setup), lines(results(l, l.arm64.finish), "RET")
	if c.n == 1 {
		return before + "\nloop:\n" + lines(one) + behind
	}
	return before + "\nblocks:\n" + lines(fmt.Sprintf("SUBS $%d, R0\nBLT rest", c.n), neonBlock(l, c), "B blocks") +
		"\nrest:\n" + lines(fmt.Sprintf("ADDS $%d, R0\nBEQ done", c.n)) + "\nloop:\n" + lines(one) + "\ndone:\n" + behind
}

// neonBlock loads, computes and stores as many blocks as there are copies.
func neonBlock(l *loop, c copies) (text string) {
	for i, o := range l.kind.operands {
		if list, _ := c.list(i); o.elem != "uint8" {
			text += fmt.Sprintf("VLD1.P %d(%s), %s\n", 16*c.n, arm64Pointers[i], list)
			continue
		}
		for _, r := range c.registers(i) {
			text += fmt.Sprintf("FMOVS.P 4(%s), F%d\nVUSHLL $0, V%[2]d.B8, V%[2]d.H8\nVUSHLL $0, V%[2]d.H4, V%[2]d.S4\n", arm64Pointers[i], r)
		}
	}
	text += c.body(l.arm64.body)
	out, together := c.list(l.arm64.out)
	if l.kind.dst != "uint8" && together {
		return text + fmt.Sprintf("VST1.P %s, %d(R1)\n", out, 16*c.n)
	}
	for _, r := range c.registers(l.arm64.out) {
		if l.kind.dst == "uint8" {
			text += fmt.Sprintf("VUSHR $31, V%d.S4, V%[1]d.S4\nXTN16(%[1]d, %[1]d)\nXTN8(%[1]d, %[1]d)\nFMOVS.P F%[1]d, 4(R1)\n", r)
		} else {
			text += fmt.Sprintf("VST1.P [V%d.S4], 16(R1)\n", r)
		}
	}
	return text
}

// reduceARM64 gathers blocks in V0 to V3, four at a time, and adds them up. In body, X
// and Y are the numbers of the operands' registers and ACC that of the four.
func reduceARM64(l *loop) string {
	block := func(i int) string {
		return strings.NewReplacer("X", fmt.Sprint(16+i), "Y", fmt.Sprint(20+i), "ACC", fmt.Sprint(i)).Replace(l.arm64.body)
	}
	loads, loadsOne := "", ""
	for i, r := range arm64Pointers[:len(l.kind.operands)] {
		v := 16 + 4*i
		loads += fmt.Sprintf("VLD1.P 64(%s), [V%d.S4, V%d.S4, V%d.S4, V%d.S4]\n", r, v, v+1, v+2, v+3)
		loadsOne += fmt.Sprintf("VLD1.P 16(%s), [V%d.S4]\n", r, v)
	}
	zero := ""
	for i := range 4 {
		zero += fmt.Sprintf("VEOR V%[1]d.B16, V%[1]d.B16, V%[1]d.B16\n", i)
	}
	sum := "FADD(0, 0, 1)\nFADD(2, 2, 3)\nFADD(0, 0, 2)\nFADDP(0, 0, 0)\nFADDP(0, 0, 0)\nFMOVS F0, RESULT"
	return lines(arm64Arguments(l), zero) + "\nfour:\n" +
		lines("SUBS $4, R0", "BLT rest", loads, block(0), block(1), block(2), block(3), "B four") +
		"\nrest:\n" + lines("ADDS $4, R0", "BEQ done") + "\none:\n" +
		lines(loadsOne, block(0), "SUBS $1, R0", "BNE one") + "\ndone:\n" +
		lines(results(l, sum), "RET")
}

// rawARM64 is a loop whose body is all of it.
func rawARM64(l *loop) string {
	return lines(arm64Arguments(l)) + labelled(results(l, l.arm64.body)) + lines("RET")
}

// tables collects the constants that an assembly file loads one after another.
type tables struct{ lists []string }

// resolve replaces TABLE register names by the address of those constants.
func (t *tables) resolve(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "TABLE "); ok {
			register, names, _ := strings.Cut(strings.TrimSpace(rest), " ")
			i := slices.Index(t.lists, names)
			if i < 0 {
				i, t.lists = len(t.lists), append(t.lists, names)
			}
			line = fmt.Sprintf("MOVD $table%d<>(SB), %s\n", i, register)
		}
		b.WriteString(line)
	}
	return b.String()
}

// data writes them.
func (t *tables) data() string {
	var b strings.Builder
	for i, list := range t.lists {
		names := strings.Fields(list)
		for j, name := range names {
			fmt.Fprintf(&b, "DATA table%d<>+%d(SB)/4, $0x%08x // %s\n", i, 4*j, bitsOf(name), name)
		}
		fmt.Fprintf(&b, "GLOBL table%d<>(SB), RODATA|NOPTR, $%d\n\n", i, 4*len(names))
	}
	return b.String()
}

// convertARM64 is a loop over blocks of four elements whose body loads and stores them, or over four of those and the rest.
func convertARM64(l *loop) string {
	before, four := lines(arm64Arguments(l), l.arm64.setup), ""
	if l.arm64.four != "" {
		four = "\nfour:\n" + lines("SUBS $4, R0\nBLT rest", l.arm64.four, "B four") + "\nrest:\n" + lines("ADDS $4, R0\nBEQ done")
	}
	return before + four + "\nloop:\n" + lines(l.arm64.body, "SUBS $1, R0", "BNE loop") + "\ndone:\n" + lines("RET")
}
