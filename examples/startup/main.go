// Command startup measures the startup cost of a program: the time to open and load it, the
// time of the first run, and the peak memory until then.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: startup MODEL.pte")
		os.Exit(2)
	}
	if err := measure(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "startup:", err)
		os.Exit(1)
	}
}

// measure runs the method "forward" once, on zeros.
func measure(path string) error {
	begun := time.Now()
	p, err := etrun.Open(path, etrun.WithDelegates(all.Backends()...), etrun.WithThreads(1))
	if err != nil {
		return err
	}
	defer p.Close()
	m, err := p.Load(context.Background(), "")
	if err != nil {
		return err
	}
	defer m.Close()
	loaded := time.Since(begun)
	for i, in := range m.Meta().Inputs {
		v := in.Scalar
		if v.Tensor = in.NewTensor(); v.Tensor != nil {
			v.Kind = in.Kind
		}
		if err := m.SetValue(i, v); err != nil {
			return err
		}
	}
	begun = time.Now()
	if err := m.Execute(context.Background()); err != nil {
		return err
	}
	fmt.Printf("load %.3f ms, first run %.3f ms, peak %.1f MB\n", ms(loaded), ms(time.Since(begun)), peak())
	return nil
}

func ms(d time.Duration) float64 { return d.Seconds() * 1e3 }

// peak is the peak resident memory of the process in megabytes, 0 if unknown.
func peak() float64 {
	status, _ := os.ReadFile("/proc/self/status")
	_, after, _ := bytes.Cut(status, []byte("VmHWM:"))
	var kilobytes float64
	_, _ = fmt.Sscan(string(after), &kilobytes)
	return kilobytes / 1024
}
