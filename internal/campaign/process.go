//go:build linux

package campaign

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/etrun-go/etrun/internal/cputime"
)

// Process is one process of a campaign.
type Process struct {
	Folder string // of the campaign's files
	state  progress
}

// Count adds to the counter of a number.
func (p *Process) Count(counter int, n int) {
	p.state.set(1+counter, p.state.get(1+counter)+uint64(n))
}

// process runs the seeds that the environment gives.
func (c *Campaign) process(t *testing.T, folder string) {
	p := &Process{Folder: folder, state: openProgress(t, folder)}
	list, err := os.OpenFile(filepath.Join(folder, "list"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	step := c.Start(t, p)
	from := Number(EnvSeed, 0)
	to := from + Number(EnvRuns, 0)
	goroutines := 0
	for seed := from; seed < to; seed++ {
		p.state.set(0, seed)
		if err := Cost(c.Memory, func() error { return step(seed) }); err != nil {
			var f *Finding
			if !errors.As(err, &f) {
				f = &Finding{Kind: "error", Message: err.Error()}
			}
			f.Seed = seed
			line, _ := json.Marshal(f)
			list.Write(append(line, '\n'))
		}
		if (seed-from)%4096 == 100 {
			goroutines = wantNoMore(t, goroutines)
		}
	}
	p.state.set(0, to)
}

// wantNoMore ends a process whose goroutines grow in number, and lets the garbage
// collector look at what was not closed: leaked pins end the process as well.
func wantNoMore(t *testing.T, before int) int {
	t.Helper()
	runtime.GC()
	n := runtime.NumGoroutine()
	if before > 0 && n > before+10 {
		t.Fatalf("%d goroutines, %d before", n, before)
	}
	return max(n, before)
}

// Cost runs f. It is a *Finding if f takes more than MostTime of the processor, or lets
// resident memory grow by more than some bytes, 0 for any number.
func Cost(memory uint64, f func() error) error {
	begun, resident := cputime.Process(), startResident()
	if err := f(); err != nil {
		return err
	}
	if took := cputime.Process() - begun; took > MostTime {
		return &Finding{Kind: "time", Message: took.String()}
	}
	if n := resident.grown(); memory > 0 && n > memory {
		return &Finding{Kind: "memory", Message: fmt.Sprintf("%d bytes resident, at most %d", n, memory)}
	}
	return nil
}

// resident is the process's resident memory when a seed began.
type resident uint64

// startResident lets the kernel's peak start anew.
func startResident() resident {
	os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	return resident(statusBytes("VmRSS:"))
}

// grown is how much more has been resident since.
func (r resident) grown() uint64 { return max(statusBytes("VmHWM:"), uint64(r)) - uint64(r) }

func statusBytes(field string) uint64 {
	data, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(data), field)
	line, _, _ := strings.Cut(rest, "kB")
	n, _ := strconv.ParseUint(strings.TrimSpace(line), 10, 64)
	return n << 10
}

// progress is memory that a process shares with the campaign, and that outlives it: the
// seed, then the counters.
type progress []byte

func openProgress(t testing.TB, folder string) progress {
	f, err := os.OpenFile(filepath.Join(folder, "state"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(4096); err != nil {
		t.Fatal(err)
	}
	b, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// close forgets the figures too.
func (p progress) close() {
	clear(p)
	unix.Munmap(p)
}

func (p progress) get(i int) uint64    { return binary.LittleEndian.Uint64(p[8*i:]) }
func (p progress) set(i int, n uint64) { binary.LittleEndian.PutUint64(p[8*i:], n) }
