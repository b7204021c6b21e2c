//go:build linux && (amd64 || arm64)

package isolate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/trace"
	"github.com/etrun-go/etrun/serve"
)

// workers are the main functions of test processes, by name.
var workers = map[string]func(args []string) error{
	"good":  func(args []string) error { return work(args, nil) },
	"exits": func([]string) error { os.Exit(7); return nil },
	"first": func(args []string) error { return sendAll(args, &reply{ID: 1}) },
	"event": func(args []string) error {
		return sendAll(args, good(), &event{Kind: trace.Delegate, Backend: "SomethingElse"})
	},
	"memory": func(args []string) error {
		return sendAll(args, good(), &event{Kind: trace.Memory, Name: trace.MemoryPacked, Bytes: -1})
	},
	"promises": func([]string) error {
		h := good()
		h.Events = 1 << 60
		l := socket()
		return errors.Join(l.write(h), l.write(&event{Kind: trace.Memory, Name: trace.MemoryPacked, Bytes: 100}))
	},
	"between": func(args []string) error {
		h := good()
		h.Events = 2
		return sendAll(args, h, &reply{ID: 1})
	},
	"unasked":  func(args []string) error { return sendAll(args, good(), &reply{ID: 77}) },
	"instance": func(args []string) error { return answerAll(args, &reply{Bytes: math.MaxInt64}) },
	"huge":     func(args []string) error { return raw([]byte{0xff, 0xff, 0xff, 0x7f}) },
	"empty":    func(args []string) error { return raw(make([]byte, 64)) },
	"declares": func(args []string) error {
		h := good()
		h.Methods[0].Inputs[0].Sizes = []int{1 << 40}
		return sendAll(args, h)
	},
	"outside": func(args []string) error { return lie(args, func(v *value) { v.Offset = 1 << 40 }) },
	"beyond":  func(args []string) error { return lie(args, func(v *value) { v.Offset = 4096 }) },
	"shape":   func(args []string) error { return lie(args, func(v *value) { v.Sizes = []int{1, 11} }) },
	"rank":    func(args []string) error { return lie(args, func(v *value) { v.Sizes = []int{10} }) },
	"type":    func(args []string) error { return lie(args, func(v *value) { v.DType = tensor.Float64 }) },
	"kind":    func(args []string) error { return lie(args, func(v *value) { v.Kind = tensor.KindInt }) },
	"crashes": func(args []string) error { return work(args, func() error { os.Exit(9); return nil }) },
	"sleeps":  func(args []string) error { return work(args, func() error { time.Sleep(time.Hour); return nil }) },
	"panics":  func(args []string) error { return work(args, func() error { go panic("on purpose"); select {} }) },
	"tries":   func(args []string) error { return work(args, try) },
	"eats": func(args []string) error {
		return work(args, func() error {
			debug.SetGCPercent(-1)
			b := make([]byte, 1<<30)
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			return nil
		})
	},
}

// work runs a process whose program calls act if its first input begins with 13.
func work(args []string, act func() error) error {
	memory, _ := strconv.ParseInt(args[0], 10, 64)
	j := &Job{Instances: 2, Memory: memory, Names: map[string]string{FilePath(0): "the model"}}
	j.Open = func(ctx context.Context, o etrun.Observer) (serve.Program, string, error) {
		p, err := etrun.OpenSource(ctx, etrun.File(FilePath(0)), etrun.WithDelegates(all.Backends()...), etrun.WithLowering(etrun.LowerRewrite),
			etrun.WithThreads(1), etrun.WithObserver(o))
		if err != nil {
			return nil, "", err
		}
		return acting{serve.Local(p, nil), act}, "digest", nil
	}
	return Work(j)
}

type acting struct {
	serve.Program
	act func() error
}

func (p acting) Pool(ctx context.Context, method string, n int) (serve.Runner, error) {
	r, err := p.Program.Pool(ctx, method, n)
	rows, _ := r.(serve.RowRunner)
	return actor{rows, p.act}, err
}

type actor struct {
	serve.RowRunner
	act func() error
}

func (a actor) Run(ctx context.Context, in []tensor.Value, out []int, take func(int, *tensor.Value)) error {
	if a.act != nil && tensor.View[float32](in[0].Tensor.Data)[0] == 13 {
		if err := a.act(); err != nil {
			return err
		}
	}
	return a.RowRunner.Run(ctx, in, out, take)
}

// good returns the hello of a process that serves the digits.
func good() *hello {
	of := func(name string, sizes ...int) etrun.ValueMeta {
		return etrun.ValueMeta{Name: name, Kind: tensor.KindTensor, DType: tensor.Float32, Sizes: sizes}
	}
	return &hello{Methods: []etrun.MethodMeta{{Name: "forward", Inputs: []etrun.ValueMeta{of("in", 1, 1, 8, 8)}, Outputs: []etrun.ValueMeta{of("out", 1, 10)}}}}
}

func socket() *link {
	conn, err := net.FileConn(os.NewFile(socketFile, "socket"))
	if err != nil {
		panic(err)
	}
	return newLink(conn, fromWorker, toWorker, 0)
}

// sendAll sends messages and waits for the end.
func sendAll(_ []string, list ...message) error {
	l := socket()
	for _, m := range list {
		if err := l.write(m); err != nil {
			return err
		}
	}
	select {}
}

func raw(b []byte) error {
	_, err := socket().conn.Write(b)
	if err == nil {
		select {}
	}
	return err
}

// answerAll sends the same answer to every call.
func answerAll(_ []string, answer *reply) error {
	l := socket()
	if err := l.write(good()); err != nil {
		return err
	}
	for {
		m, err := l.read()
		if err != nil {
			return err
		}
		if b, ok := m.(*begin); ok {
			answer.ID = b.ID
			if err := l.write(answer); err != nil {
				return err
			}
		}
	}
}

// lie answers every run with a modified output.
func lie(_ []string, change func(*value)) error {
	l := socket()
	if err := l.write(good()); err != nil {
		return err
	}
	for {
		m, err := l.read()
		if err != nil {
			return err
		}
		if r, ok := m.(*run); ok {
			v := value{Kind: tensor.KindTensor, DType: tensor.Float32, Sizes: []int{1, 10}}
			change(&v)
			if err := l.write(&reply{ID: r.ID, Values: []value{v}}); err != nil {
				return err
			}
		}
	}
}

// try attempts what a worker must not do, and fails if that works.
func try() error {
	var could []string
	for name, do := range map[string]func() error{
		"open a file":    func() error { _, err := os.Open("/etc/passwd"); return err },
		"open its model": func() error { _, err := os.Open(FilePath(0)); return err },
		"write a file":   func() error { return os.WriteFile(filepath.Join(os.TempDir(), "etrun-worker"), nil, 0o600) },
		"execute":        func() error { return exec.Command("/bin/true").Run() },
		"connect":        func() error { _, err := net.Dial("tcp", "127.0.0.1:9"); return deny(err) },
		"make a socket":  func() error { _, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0); return err },
		"signal":         func() error { return syscall.Kill(os.Getppid(), 0) },
		"raise a limit": func() error {
			return syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: 1 << 40, Max: 1 << 40})
		},
		"resize tensors": func() error { return syscall.Ftruncate(memoryFile, 1<<20) },
		"map code": func() error {
			_, err := syscall.Mmap(-1, 0, 4096, syscall.PROT_EXEC, syscall.MAP_PRIVATE|syscall.MAP_ANON)
			return err
		},
		"change its user": func() error { return syscall.Setuid(1) },
	} {
		if do() == nil {
			could = append(could, name)
		}
	}
	if len(could) > 0 {
		return fmt.Errorf("it could %s", strings.Join(could, ", "))
	}
	return nil
}

// deny returns nil for errors after the socket was created.
func deny(err error) error {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil
	}
	return err
}
