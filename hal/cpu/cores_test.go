package cpu

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
)

// Texts of /proc/cpuinfo have a block for each processor.
func block(i int, features, implementer, variant, part, revision string) string {
	return fmt.Sprintf("processor\t: %d\nBogoMIPS\t: 108.00\nFeatures\t: %s\nCPU implementer\t: %s\nCPU architecture: 8\nCPU variant\t: %s\n"+
		"CPU part\t: %s\nCPU revision\t: %s\n\n", i, features, implementer, variant, part, revision)
}

func blocks(from, n int, features, implementer, variant, part, revision string) (text string) {
	for i := range n {
		text += block(from+i, features, implementer, variant, part, revision)
	}
	return text
}

const (
	first = "fp asimd evtstrm crc32 cpuid"
	v8    = "fp asimd evtstrm aes pmull sha1 sha2 crc32 cpuid"
	v82   = "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp"
	v84   = v82 + " sha3 sm3 sm4 sha512 sve asimdfhm dit uscat ilrcpc flagm ssbs paca pacg dcpodp svei8mm svebf16 i8mm bf16 dgh rng"
	model = "Hardware\t: BCM2835\nRevision\t: a02082\nSerial\t\t: 00000000deadbeef\nModel\t\t: Raspberry Pi 3 Model B Rev 1.2\n"
)

// TestParseCores reads texts as kernels of boards, phones and servers write them.
func TestParseCores(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       string
	}{
		{"Raspberry Pi 3", blocks(0, 4, first, "0x41", "0x0", "0xd03", "4") + model, "4 Cortex-A53 (in order)"},
		{"Raspberry Pi Zero 2", blocks(0, 4, first, "0x41", "0x0", "0xd03", "4") + "Model\t\t: Raspberry Pi Zero 2 W Rev 1.0\n", "4 Cortex-A53 (in order)"},
		{"Raspberry Pi 4", blocks(0, 4, first, "0x41", "0x0", "0xd08", "3"), "4 Cortex-A72"},
		{"Raspberry Pi 5", blocks(0, 4, v82, "0x41", "0x4", "0xd0b", "1"), "4 Cortex-A76"},
		{"Raspberry Pi 1, 32 bits", "processor\t: 0\nmodel name\t: ARMv6-compatible processor rev 7 (v6l)\nBogoMIPS\t: 697.95\nFeatures\t: half thumb fastmult vfp edsp java tls\n" +
			"CPU implementer\t: 0x41\nCPU architecture: 7\nCPU variant\t: 0x0\nCPU part\t: 0xb76\nCPU revision\t: 7\n", "1 ARM1176 (in order)"},
		{"i.MX 8M Mini", blocks(0, 4, v8, "0x41", "0x0", "0xd03", "4"), "4 Cortex-A53 (in order)"},
		{"i.MX 8QuadMax", blocks(0, 4, v8, "0x41", "0x0", "0xd03", "4") + blocks(4, 2, v8, "0x41", "0x0", "0xd08", "2"), "4 Cortex-A53 (in order), 2 Cortex-A72"},
		{"i.MX 93", blocks(0, 2, v82, "0x41", "0x2", "0xd05", "0"), "2 Cortex-A55 (in order)"},
		{"Jetson Nano", strings.ReplaceAll(blocks(0, 4, v8, "0x41", "0x1", "0xd07", "1"), "BogoMIPS", "model name\t: ARMv8 Processor rev 1 (v8l)\nBogoMIPS"),
			"4 Cortex-A57"},
		{"Jetson TX2", block(0, v8, "0x41", "0x1", "0xd07", "3") + blocks(1, 2, v8, "0x4e", "0x0", "0x003", "0") + blocks(3, 3, v8, "0x41", "0x1", "0xd07", "3"),
			"4 Cortex-A57, 2 Denver 2 (in order)"},
		{"Jetson Xavier", blocks(0, 8, v82, "0x4e", "0x0", "0x004", "0"), "8 Carmel"},
		{"Jetson Orin", blocks(0, 6, v82, "0x41", "0x0", "0xd42", "1"), "6 Cortex-A78AE"},
		{"Graviton2", blocks(0, 64, v82, "0x41", "0x3", "0xd0c", "1"), "64 Neoverse-N1"},
		{"Graviton3", blocks(0, 64, v84, "0x41", "0x1", "0xd40", "1"), "64 Neoverse-V1"},
		{"RK3588", blocks(0, 4, v82, "0x41", "0x2", "0xd05", "0") + blocks(4, 4, v82, "0x41", "0x4", "0xd0b", "0"), "4 Cortex-A55 (in order), 4 Cortex-A76"},
		{"RK3399", blocks(0, 4, v8, "0x41", "0x0", "0xd03", "4") + blocks(4, 2, v8, "0x41", "0x0", "0xd08", "2"), "4 Cortex-A53 (in order), 2 Cortex-A72"},
		{"Snapdragon 845", blocks(0, 4, v82, "0x51", "0x7", "0x803", "12") + blocks(4, 4, v82, "0x51", "0x6", "0x802", "13"),
			"4 Kryo 3xx Silver (in order), 4 Kryo 3xx Gold"},
		{"Pixel 8", blocks(0, 4, v84, "0x41", "0x1", "0xd46", "1") + blocks(4, 4, v84, "0x41", "0x1", "0xd4d", "0") + block(8, v84, "0x41", "0x1", "0xd4e", "0"),
			"4 Cortex-A510 (in order), 4 Cortex-A715, 1 Cortex-X3"},
		{"kernel 3.10, one part", "Processor\t: AArch64 Processor rev 3 (aarch64)\nprocessor\t: 0\nprocessor\t: 1\nprocessor\t: 2\nprocessor\t: 3\n" +
			"Features\t: fp asimd aes pmull sha1 sha2 crc32\nCPU implementer\t: 0x41\nCPU architecture: AArch64\nCPU variant\t: 0x0\nCPU part\t: 0xd03\nCPU revision\t: 3\n\nHardware\t: sun50iw1p1\n",
			"4 Cortex-A53 (in order)"},
		{"a part of the future", blocks(0, 2, v84, "0x41", "0x0", "0xfff", "0"), "2 implementer 0x41, part 0xfff"},
		{"x86", "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel name\t: Intel(R) Xeon(R)\nflags\t\t: fpu sse2 avx2\n", ""},
		{"RISC-V", "processor\t: 0\nhart\t\t: 2\nisa\t\t: rv64imafdc\nmmu\t\t: sv39\n", ""},
		{"empty", "", ""},
		{"no numbers", "processor : x\nCPU implementer : arm\nCPU part : 0xd03\nCPU part : -1\nCPU part : 0x1d03\nCPU part\nCPU part:", "1 implementer 0x00, part 0xd03"},
		{"no manufacturer of a second part", block(0, v8, "0x41", "0x0", "0xd03", "4") + "processor:1\nCPU implementer: 0x4141\nCPU part: 0xd08",
			"1 Cortex-A53 (in order), 1 implementer 0x00, part 0xd08"},
		{"bytes", "\x00\xff:\n::\nCPU part\x00: 0xd03\n\r\n", ""},
	} {
		got := parseCores(c.text)
		if text := DescribeCores(got); text != c.want {
			t.Errorf("%s: got %q, want %q", c.name, text, c.want)
		}
	}
}

// TestParseManyCores wants bounds on what a text may ask for.
func TestParseManyCores(t *testing.T) {
	text := ""
	for i := range 4096 {
		text += fmt.Sprintf("CPU implementer : 0x7f\nCPU part : %#x\n", i)
	}
	if got := parseCores(text); len(got) != maxKinds {
		t.Errorf("got %d kinds of cores, want %d", len(got), maxKinds)
	}
	long := strings.Repeat("\n", maxText) + "CPU implementer : 0x41\nCPU part : 0xd03\n"
	if got := readCores(files("proc/cpuinfo", long)); got != nil {
		t.Errorf("a text of %d bytes: got %v, want none", len(long), got)
	}
}

// TestReadCores reads /sys where /proc has no parts.
func TestReadCores(t *testing.T) {
	const path = "sys/devices/system/cpu/cpu%d/regs/identification/midr_el1"
	at := func(i int) string { return fmt.Sprintf(path, i) }
	for _, c := range []struct {
		name  string
		files fstest.MapFS
		want  []Cores
	}{
		{"nothing", files(), nil},
		{"proc first", files("proc/cpuinfo", block(0, v8, "0x41", "0x0", "0xd08", "3"), at(0), "0x00000000410fd034\n"), []Cores{{"Cortex-A72", 1, false}}},
		{"sys", files("proc/cpuinfo", "processor : 0\n", at(0), "0x00000000410fd034\n", at(1), "0x00000000410fd034\n", at(2), "0x00000000414fd0b1\n"),
			[]Cores{{"Cortex-A53", 2, true}, {"Cortex-A76", 1, false}}},
		{"sys without numbers", files(at(0), "none\n"), nil},
	} {
		if got := readCores(c.files); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
