package main

import (
	"fmt"
	"strings"
)

// Rows of bytes or halves put together, one element of each after the other.

var zipSets = []set{{"zip_arm64", "Two, three or four rows of bytes and halves put together, n blocks of 16 bytes of each. Strides are in bytes.", neonZips()}}

func neonZips() (list []routine) {
	for _, elements := range []struct{ name, lanes string }{{"Bytes", "B16"}, {"Halves", "H8"}} {
		for rows := 2; rows <= 4; rows++ {
			signature := fmt.Sprintf("func zip%d%s(n int, dst, src *byte, stride int)", rows, elements.name)
			f := frameOf(signature)
			var registers []string
			before, body := f.arguments("MOVD", "n", "R0", "dst", "R1", "src", "R4", "stride", "R3"), ""
			for r := range rows {
				if r > 0 {
					before += fmt.Sprintf("ADD R3, R%d, R%d\n", 3+r, 4+r)
				}
				registers = append(registers, fmt.Sprintf("V%d.%s", r, elements.lanes))
				body += fmt.Sprintf("VLD1.P 16(R%d), [%s]\n", 4+r, registers[r])
			}
			body += fmt.Sprintf("VST%d.P [%s], %d(R1)\n", rows, strings.Join(registers, ", "), 16*rows)
			list = append(list, routine{signature, lines(before) + "\nloop:\n" + lines(body, "SUBS $1, R0\nBNE loop\nRET")})
		}
	}
	return list
}
