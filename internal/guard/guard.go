//go:build linux

// Package guard provides memory for tests that starts or ends at a page without access: a read or
// write beyond it ends the process by SIGSEGV.
package guard

import (
	"fmt"
	"math/bits"
	"os"

	"golang.org/x/sys/unix"
)

// Memory is accessible pages between two pages without access.
type Memory struct {
	pages  []byte // accessible pages
	mapped []byte
}

// Map returns memory of at least n bytes. Unmap frees it.
func Map(n int) (*Memory, error) {
	page := os.Getpagesize()
	size := max(1, (n+page-1)/page) * page
	mapped, err := unix.Mmap(-1, 0, size+2*page, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	m := &Memory{pages: mapped[page : page+size : page+size], mapped: mapped}
	if err := unix.Mprotect(m.pages, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		unix.Munmap(mapped)
		return nil, fmt.Errorf("guard: %w", err)
	}
	return m, nil
}

// Len returns the number of accessible bytes.
func (m *Memory) Len() int { return len(m.pages) }

// End returns n bytes of m that end slack bytes before the inaccessible page. Its capacity is n.
// Slices of the same Memory share bytes.
func (m *Memory) End(n, slack int) []byte {
	end := len(m.pages) - slack
	return m.pages[end-n : end : end]
}

// Start returns n bytes of m that start slack bytes after the inaccessible page.
func (m *Memory) Start(n, slack int) []byte { return m.pages[slack : slack+n : slack+n] }

// Behind returns n+claim bytes of m, the first n of which end slack bytes before the inaccessible
// page: a slice that claims more memory than is accessible. claim is at most a page.
func (m *Memory) Behind(n, slack, claim int) []byte {
	end := len(m.mapped) - os.Getpagesize() - slack
	return m.mapped[end-n : end+claim : end+claim]
}

// Fill sets every accessible byte.
func (m *Memory) Fill(b byte) {
	for i := range m.pages {
		m.pages[i] = b
	}
}

// Unmap frees the memory. Slices of it must not be used any more.
func (m *Memory) Unmap() error { return unix.Munmap(m.mapped) }

// Arena hands out memory and reclaims all of it at once, so that mappings are reused. It is not
// safe for concurrent use.
type Arena struct {
	free [48][]*Memory // by the logarithm of the number of pages
	used []*Memory
}

// Allocate returns memory of at least n bytes, valid until Reset. It may contain data from earlier
// uses.
func (a *Arena) Allocate(n int) (*Memory, error) {
	page := os.Getpagesize()
	class := bits.Len(uint(max(0, n-1) / page))
	if free := a.free[class]; len(free) > 0 {
		m := free[len(free)-1]
		a.free[class] = free[:len(free)-1]
		a.used = append(a.used, m)
		return m, nil
	}
	m, err := Map(page << class)
	if err == nil {
		a.used = append(a.used, m)
	}
	return m, err
}

// Reset reclaims all memory returned by Take since the last Reset; slices of it must not be used
// any more. Memory above 1 MiB is unmapped.
func (a *Arena) Reset() {
	for _, m := range a.used {
		if m.Len() > 1<<20 {
			m.Unmap()
			continue
		}
		class := bits.Len(uint(m.Len()-1) / uint(os.Getpagesize()))
		a.free[class] = append(a.free[class], m)
	}
	a.used = a.used[:0]
}
