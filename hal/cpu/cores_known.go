package cpu

import "fmt"

// core is a kind of core by its manufacturer and part, as in the register MIDR_EL1.
type core struct {
	implementer uint8
	part        uint16
}

// name is the core's name, or its numbers.
func (c core) name() string {
	if known, ok := knownCores[c]; ok {
		return known.name
	}
	return fmt.Sprintf("implementer 0x%02x, part 0x%03x", c.implementer, c.part)
}

// Manufacturers.
const (
	byArm       = 0x41
	byBroadcom  = 0x42
	byHiSilicon = 0x48
	byNvidia    = 0x4e
	byQualcomm  = 0x51
	byApple     = 0x61
	byAmpere    = 0xc0
)

// knownCores are cores of boards, phones and servers.
var knownCores = map[core]struct {
	name    string
	inOrder bool
}{
	{byArm, 0xc05}: {"Cortex-A5", true}, {byArm, 0xc07}: {"Cortex-A7", true}, {byArm, 0xc08}: {"Cortex-A8", true},
	{byArm, 0xc09}: {"Cortex-A9", false}, {byArm, 0xc0e}: {"Cortex-A17", false}, {byArm, 0xc0f}: {"Cortex-A15", false},
	{byArm, 0xb76}: {"ARM1176", true},
	{byArm, 0xd01}: {"Cortex-A32", true}, {byArm, 0xd02}: {"Cortex-A34", true}, {byArm, 0xd03}: {"Cortex-A53", true},
	{byArm, 0xd04}: {"Cortex-A35", true}, {byArm, 0xd05}: {"Cortex-A55", true},
	{byArm, 0xd06}: {"Cortex-A65", false}, {byArm, 0xd07}: {"Cortex-A57", false}, {byArm, 0xd08}: {"Cortex-A72", false},
	{byArm, 0xd09}: {"Cortex-A73", false}, {byArm, 0xd0a}: {"Cortex-A75", false}, {byArm, 0xd0b}: {"Cortex-A76", false},
	{byArm, 0xd0c}: {"Neoverse-N1", false}, {byArm, 0xd0d}: {"Cortex-A77", false}, {byArm, 0xd0e}: {"Cortex-A76AE", false},
	{byArm, 0xd40}: {"Neoverse-V1", false}, {byArm, 0xd41}: {"Cortex-A78", false}, {byArm, 0xd42}: {"Cortex-A78AE", false},
	{byArm, 0xd43}: {"Cortex-A65AE", false}, {byArm, 0xd44}: {"Cortex-X1", false}, {byArm, 0xd46}: {"Cortex-A510", true},
	{byArm, 0xd47}: {"Cortex-A710", false}, {byArm, 0xd48}: {"Cortex-X2", false}, {byArm, 0xd49}: {"Neoverse-N2", false},
	{byArm, 0xd4b}: {"Cortex-A78C", false}, {byArm, 0xd4c}: {"Cortex-X1C", false}, {byArm, 0xd4d}: {"Cortex-A715", false},
	{byArm, 0xd4e}: {"Cortex-X3", false}, {byArm, 0xd4f}: {"Neoverse-V2", false}, {byArm, 0xd80}: {"Cortex-A520", true},
	{byArm, 0xd81}: {"Cortex-A720", false}, {byArm, 0xd82}: {"Cortex-X4", false}, {byArm, 0xd84}: {"Neoverse-V3", false},
	{byArm, 0xd85}: {"Cortex-X925", false}, {byArm, 0xd87}: {"Cortex-A725", false}, {byArm, 0xd8e}: {"Neoverse-N3", false},

	{byBroadcom, 0x100}:  {"Brahma-B53", true},
	{byHiSilicon, 0xd01}: {"TaiShan-v110", false},
	{byNvidia, 0x000}:    {"Denver", true}, {byNvidia, 0x003}: {"Denver 2", true}, {byNvidia, 0x004}: {"Carmel", false},
	// Qualcomm's are Arm's with other numbers: Silver is A53 or A55, Gold A73, A75 or A76
	{byQualcomm, 0x800}: {"Kryo 2xx Gold", false}, {byQualcomm, 0x801}: {"Kryo 2xx Silver", true},
	{byQualcomm, 0x802}: {"Kryo 3xx Gold", false}, {byQualcomm, 0x803}: {"Kryo 3xx Silver", true},
	{byQualcomm, 0x804}: {"Kryo 4xx Gold", false}, {byQualcomm, 0x805}: {"Kryo 4xx Silver", true},
	{byQualcomm, 0xc00}: {"Falkor", false}, {byQualcomm, 0x001}: {"Oryon", false},
	{byApple, 0x022}: {"M1 Icestorm", false}, {byApple, 0x023}: {"M1 Firestorm", false},
	{byAmpere, 0xac3}: {"Ampere-1", false}, {byAmpere, 0xac4}: {"Ampere-1a", false},
}
