//go:build linux

// Package guard gives tests memory that ends, or begins, at a page without access: a
// read or write beyond it ends the process by SIGSEGV.
package guard

import (
	"fmt"
	"math/bits"
	"os"

	"golang.org/x/sys/unix"
)

// Memory is accessible pages between two pages without access.
type Memory struct {
	pages  []byte // those with access
	mapped []byte
}

// Map makes memory of at least n bytes. Unmap frees it.
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

// Len is the number of bytes with access.
func (m *Memory) Len() int { return len(m.pages) }

// End is n bytes of m that end slack bytes before the page without access. Its
// capacity is n. The slices of one Memory share their bytes.
func (m *Memory) End(n, slack int) []byte {
	end := len(m.pages) - slack
	return m.pages[end-n : end : end]
}

// Start is n bytes of m that begin slack bytes behind the page without access.
func (m *Memory) Start(n, slack int) []byte { return m.pages[slack : slack+n : slack+n] }

// Behind is n+claim bytes of m of which the first n end slack bytes before the page
// without access: memory that says more of itself than there is. claim is at most a
// page.
func (m *Memory) Behind(n, slack, claim int) []byte {
	end := len(m.mapped) - os.Getpagesize() - slack
	return m.mapped[end-n : end+claim : end+claim]
}

// Fill sets every byte with access.
func (m *Memory) Fill(b byte) {
	for i := range m.pages {
		m.pages[i] = b
	}
}

// Unmap frees the memory. Slices of it must not be used any more.
func (m *Memory) Unmap() error { return unix.Munmap(m.mapped) }

// Arena hands out memory and takes all of it back at once, so that it is mapped once
// for many uses. It is not safe for concurrent use.
type Arena struct {
	free [48][]*Memory // by the logarithm of their pages
	used []*Memory
}

// Take gives memory of at least n bytes, until Reset. What was written into it earlier
// is still there.
func (a *Arena) Take(n int) (*Memory, error) {
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

// Reset takes back everything that Take gave since the last Reset. Slices of it must
// not be used any more. Memory above 1 MiB is unmapped.
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
