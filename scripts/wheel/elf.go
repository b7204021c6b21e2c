package main

import (
	"debug/elf"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// needs are what a library needs of the system.
type needs struct {
	machine   string
	libraries []string
	glibc     [2]int // the newest version whose symbols are used
}

// machines are the names of machines in platform tags.
var machines = map[elf.Machine]string{elf.EM_X86_64: "x86_64", elf.EM_AARCH64: "aarch64"}

// policy are the libraries that every system of a manylinux tag has.
var policy = []string{
	"libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0", "libresolv.so.2", "libutil.so.1",
	"libgcc_s.so.1", "libstdc++.so.6",
	"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1",
}

// needsOf reads a library.
func needsOf(path string) (n needs, err error) {
	f, err := elf.Open(path)
	if err != nil {
		return n, err
	}
	defer f.Close()
	if n.machine = machines[f.Machine]; n.machine == "" {
		return n, fmt.Errorf("%s: machine %v", path, f.Machine)
	}
	if n.libraries, err = f.ImportedLibraries(); err != nil {
		return n, err
	}
	symbols, err := f.ImportedSymbols()
	if err != nil {
		return n, err
	}
	for _, s := range symbols {
		if version, ok := strings.CutPrefix(s.Version, "GLIBC_"); ok {
			number, err := glibcVersion(version)
			if err != nil {
				return n, fmt.Errorf("%s: symbol %s: %w", path, s.Name, err)
			}
			if slices.Compare(number[:], n.glibc[:]) > 0 {
				n.glibc = number
			}
		}
	}
	return n, nil
}

// glibcVersion parses a version such as 2.34 or 2.2.5.
func glibcVersion(version string) (number [2]int, err error) {
	parts := strings.Split(version, ".")
	if len(parts) < 2 {
		return number, fmt.Errorf("version %q of glibc", version)
	}
	for k := range number {
		if number[k], err = strconv.Atoi(parts[k]); err != nil {
			return number, err
		}
	}
	return number, nil
}

// platform returns the platform tag.
func (n *needs) platform() string {
	other := slices.ContainsFunc(n.libraries, func(l string) bool { return !slices.Contains(policy, l) })
	if other || n.glibc[0] == 0 {
		return "linux_" + n.machine
	}
	// Tags begin at 2.17 on aarch64 and at 2.5 on x86_64, whose older names nothing needs any more.
	return fmt.Sprintf("manylinux_%d_%d_%s", n.glibc[0], max(n.glibc[1], 17), n.machine)
}
