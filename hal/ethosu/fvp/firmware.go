package fvp

import _ "embed"

// The program that runs on the models: it takes jobs for the NPU from the host. Its
// sources are in firmware; `make firmware` builds it.
var (
	//go:embed firmware/corstone-300.elf
	firmware300 []byte
	//go:embed firmware/corstone-320.elf
	firmware320 []byte
)

// firmwareVersion is what the firmware calls itself; the host takes no other.
const firmwareVersion = 1
