package main

import "fmt"

var quantizeSets = []set{
	{"quantize512_amd64", "Quantization for AVX-512, blocks of 64 elements.", []routine{quantize512(0), quantize512(1)}}}

// quantize512 does blocks until one has NaN, and returns their number. Numbers become words, which saturate, as do bytes:
// only hi has to limit the numbers themselves. Packing takes words of 16 bytes in turn; Z13 puts them in order.
func quantize512(sign int) routine {
	s := signs[sign]
	signature := "func quantize512" + s.name + "(n int, dst *uint8, src *float32, scale, hi float32, zero, lo int32) (done int)"
	f := frameOf(signature)
	four := func(format string) (text string) {
		for v := range 4 {
			text += fmt.Sprintf(format, v, offset(64*v))
		}
		return text
	}
	setup := "VBROADCASTSS " + f.at("scale") + ", Z9\nVBROADCASTSS " + f.at("hi") + ", Z10\n" +
		"MOVL " + f.at("zero") + ", AX\nVPBROADCASTW AX, Z11\nMOVL " + f.at("lo") + ", AX\nVPBROADCASTB AX, Z12\n" +
		"MOVQ $0x0d0905010c080400, AX\nVPINSRQ $0, AX, X15, X15\nMOVQ $0x0f0b07030e0a0602, AX\nVPINSRQ $1, AX, X15, X15\nVPMOVZXBD X15, Z13\n"
	return routine{signature, lines(f.arguments("MOVQ", "n", "CX", "dst", "DI", "src", "SI"), setup, "XORQ AX, AX") + "\nblock:\n" +
		lines(four("VMULPS %[2]s(SI), Z9, Z%[1]d\n"), "VCMPPS $3, Z1, Z0, K1", "VCMPPS $3, Z3, Z2, K2", "KORTESTW K1, K2", "JNZ end",
			four("VMINPS Z10, Z%[1]d, Z%[1]d\nVCVTPS2DQ Z%[1]d, Z%[1]d\n"), "VPACKSSDW Z1, Z0, Z0", "VPACKSSDW Z3, Z2, Z2",
			"VPADDSW Z11, Z0, Z0", "VPADDSW Z11, Z2, Z2", s.narrow+" Z2, Z0, Z0", "VPERMD Z0, Z13, Z0", s.maximum+" Z12, Z0, Z0",
			"VMOVDQU64 Z0, (DI)", "ADDQ $64, DI", "ADDQ $256, SI", "INCQ AX", "CMPQ AX, CX", "JLT block") +
		"\nend:\n" + lines("MOVQ AX, "+f.at("done"), "VZEROUPPER", "RET")}
}
