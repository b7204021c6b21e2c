package fvp

import _ "embed"

// The firmware for the models, which executes NPU jobs from the host. Its sources are in firmware;
// `make firmware` builds it.
var (
	//go:embed firmware/corstone-300.elf
	firmware300 []byte
	//go:embed firmware/corstone-320.elf
	firmware320 []byte
)

// firmwareVersion is the only firmware version that the host accepts.
const firmwareVersion = 1
