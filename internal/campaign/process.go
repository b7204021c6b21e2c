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
	Folder string // folder of the campaign
	state  progress
}

// Count adds n to a counter.
func (p *Process) Count(counter int, n int) {
	p.state.set(1+counter, p.state.get(1+counter)+uint64(n))
}

// process runs the seeds given by the environment.
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

// wantNoMore ends a process whose number of goroutines grows, and runs the garbage collector:
// leaked pins also end the process.
func wantNoMore(t *testing.T, before int) int {
	t.Helper()
	runtime.GC()
	n := runtime.NumGoroutine()
	if before > 0 && n > before+10 {
		t.Fatalf("%d goroutines, %d before", n, before)
	}
	return max(n, before)
}

// Cost runs f. It returns a *Finding if f takes more CPU time than MaxTime, or grows resident
// memory by more than the given number of bytes, 0 for no limit.
func Cost(memory uint64, f func() error) error {
	begun, resident := cputime.Process(), startResident()
	if err := f(); err != nil {
		return err
	}
	if took := cputime.Process() - begun; took > MaxTime {
		return &Finding{Kind: "time", Message: took.String()}
	}
	if n := resident.grown(); memory > 0 && n > memory {
		return &Finding{Kind: "memory", Message: fmt.Sprintf("%d bytes resident, at most %d", n, memory)}
	}
	return nil
}

// resident is the process's resident memory when a seed started.
type resident uint64

// startResident resets the kernel's peak.
func startResident() resident {
	os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	return resident(statusBytes("VmRSS:"))
}

// grown returns the growth of peak resident memory since then.
func (r resident) grown() uint64 { return max(statusBytes("VmHWM:"), uint64(r)) - uint64(r) }

func statusBytes(field string) uint64 {
	data, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(data), field)
	line, _, _ := strings.Cut(rest, "kB")
	n, _ := strconv.ParseUint(strings.TrimSpace(line), 10, 64)
	return n << 10
}

// progress is memory shared with the parent process, which outlives the child: the seed, then the
// counters.
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

// close also discards the contents.
func (p progress) close() {
	clear(p)
	unix.Munmap(p)
}

func (p progress) get(i int) uint64    { return binary.LittleEndian.Uint64(p[8*i:]) }
func (p progress) set(i int, n uint64) { binary.LittleEndian.PutUint64(p[8*i:], n) }
