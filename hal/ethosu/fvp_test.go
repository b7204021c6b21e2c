package ethosu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etrun-go/etrun/hal/ethosu/ethosutest"
	"github.com/etrun-go/etrun/hal/ethosu/fvp"
)

func TestMain(m *testing.M) {
	ethosutest.RunFVP(nil)
	os.Exit(m.Run())
}

// openFakeFVP opens the device of a folder of fake models.
func openFakeFVP(t testing.TB) (d Device, folder string) {
	t.Helper()
	folder = ethosutest.InstallFVPs(t)
	d, err := openFVP(FVPPrefix + folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d, folder
}

// TestFVPVectors runs calls for all kinds of NPUs on one device, which starts the
// model of each.
func TestFVPVectors(t *testing.T) {
	d, folder := openFakeFVP(t)
	vectors := []string{"u55-128/digits_cnn/d0", "u55-128/two_part_topk_cpu/d0", "u55-128/two_part_topk_cpu/d1", "u55-32/add/d0",
		"u65-256/conv3x3/d0", "u65-256/add__directdrive/d0", "u65-512/digits_cnn/d0", "u85-256/split2__directdrive/d0", "u85-2048/digits_cnn/d0"}
	for _, name := range vectors {
		t.Run(name, func(t *testing.T) { runVector(t, d, ethosutest.Find(t, name)) })
	}
	if n := len(ethosutest.Starts(t, folder)); n != 6 {
		t.Errorf("%d models were started for 6 configurations in turn", n)
	}
}

// TestFVPArguments checks the whole command line of each model.
func TestFVPArguments(t *testing.T) {
	common := []string{"CPU.semihosting-enable=1", "CPU.semihosting-stack_base=0", "CPU.semihosting-heap_limit=0", "CPU.semihosting-cwd=DIR"}
	for _, c := range []struct {
		vector string
		cpu    string
		counts bool
		want   []string
	}{
		{"u55-128/add/d0", "cpu0", false, []string{"ethosu.num_macs=128", "mps3_board.visualisation.disable-visualisation=1",
			"mps3_board.telnetterminal0.start_telnet=0", "mps3_board.uart0.out_file=-", "mps3_board.uart0.shutdown_on_eot=1", "ethosu.extra_args=--fast"}},
		{"u65-512/add/d0", "cpu0", true, []string{"ethosu.num_macs=512", "mps3_board.visualisation.disable-visualisation=1",
			"mps3_board.telnetterminal0.start_telnet=0", "mps3_board.uart0.out_file=-", "mps3_board.uart0.shutdown_on_eot=1"}},
		{"u85-1024/add/d0", "mps4_board.subsystem.cpu0", false, []string{"mps4_board.subsystem.ethosu.num_macs=1024",
			"mps4_board.visualisation.disable-visualisation=1", "vis_hdlcd.disable_visualisation=1", "mps4_board.telnetterminal0.start_telnet=0",
			"mps4_board.uart0.out_file=-", "mps4_board.uart0.unbuffered_output=1", "mps4_board.uart0.shutdown_on_eot=1",
			"mps4_board.subsystem.ethosu.extra_args=--fast"}},
	} {
		t.Run(c.vector, func(t *testing.T) {
			d, folder := openFakeFVP(t)
			v := ethosutest.Find(t, c.vector)
			p := programOf(t, v)
			n, err := d.Load(p)
			if err != nil {
				t.Fatal(err)
			}
			j, err := n.NewJob(JobOptions{Cycles: c.counts})
			if err != nil {
				t.Fatal(err)
			}
			feed(v, p, j)
			if _, err := j.Submit(context.Background()); err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, s := range append(slices.Clone(common), c.want...) {
				want = append(want, "-C", strings.Replace(s, "CPU", c.cpu, 1))
			}
			want = append(want, "-a", "DIR/firmware.elf")
			got := ethosutest.Starts(t, folder)[0]
			dir := filepath.Dir(got[len(got)-1])
			for i := range got {
				got[i] = strings.Replace(got[i], dir, "DIR", 1)
			}
			if !slices.Equal(got, want) {
				t.Errorf("arguments\n got %q\nwant %q", got, want)
			}
		})
	}
}

// TestFVPFaults makes a model fail during a job. The job must return an error, and the next one
// must work, on a new model if necessary.
func TestFVPFaults(t *testing.T) {
	for _, c := range []struct {
		fault  string
		want   error
		text   string
		status uint32
	}{
		{fault: "license", want: ErrFault, text: "License checkout failed"},
		{fault: "hang", want: ErrTimeout},
		{fault: "exit", want: ErrFault, text: "exit status 0; its last words: telnetterminal0"},
		{fault: "crash", want: ErrFault, text: "exit status 2"},
		{fault: "npu", want: ErrFault, text: "register STATUS 0x14", status: 4},
		{fault: "other npu", want: ErrUnsupported, text: "the NPU's configuration is 0x4"},
		{fault: "old reply", want: ErrFault, text: "reply to job 0, want 1"},
		{fault: "output count", want: ErrFault, text: "8 outputs, want 1"},
		{fault: "short reply", want: ErrFault, text: "reply.bin has"},
		{fault: "long reply", want: ErrFault, text: "reply.bin has"},
		{fault: "no reply", want: ErrFault, text: "reply.bin: no such file"},
	} {
		t.Run(c.fault, func(t *testing.T) {
			d, _ := openFakeFVP(t)
			v := ethosutest.Find(t, "u55-128/digits_cnn/d0")
			p := programOf(t, v)
			n, err := d.Load(p)
			if err != nil {
				t.Fatal(err)
			}
			j, err := n.NewJob(JobOptions{Timeout: 3 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			t.Setenv(ethosutest.FVPFault, c.fault)
			feed(v, p, j)
			_, err = j.Submit(context.Background())
			var e *DeviceError
			if !errors.Is(err, c.want) || !errors.As(err, &e) || e.Status != c.status || !strings.Contains(err.Error(), c.text) {
				t.Fatalf("got %v, want %v: %s, status %d", err, c.want, c.text, c.status)
			}
			t.Setenv(ethosutest.FVPFault, "")
			if c.fault == "npu" { // the model itself works, and stays
				d.(*fvpDevice).end()
			}
			feed(v, p, j)
			if _, err := j.Submit(context.Background()); err != nil {
				t.Fatal(err)
			}
			check(t, v, p, j)
		})
	}
}

func TestFVPCancel(t *testing.T) {
	d, folder := openFakeFVP(t)
	v := ethosutest.Find(t, "u55-128/add/d0")
	p := programOf(t, v)
	j := newJob(t, d, p)
	t.Setenv(ethosutest.FVPFault, "hang")
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("no patience")
	time.AfterFunc(300*time.Millisecond, func() { cancel(why) })
	if _, err := j.Submit(ctx); !errors.Is(err, why) || !errors.Is(err, ErrInterrupted) {
		t.Fatalf("got %v, want %v", err, why)
	}
	t.Setenv(ethosutest.FVPFault, "")
	feed(v, p, j)
	if _, err := j.Submit(context.Background()); err != nil {
		t.Fatal(err)
	}
	check(t, v, p, j)
	if n := len(ethosutest.Starts(t, folder)); n != 2 {
		t.Errorf("%d models were started, want 2", n)
	}
}

func TestFVPCounters(t *testing.T) {
	d, _ := openFakeFVP(t)
	p := programOf(t, ethosutest.Find(t, "u55-128/add/d0"))
	n, err := d.Load(p)
	if err != nil {
		t.Fatal(err)
	}
	j, err := n.NewJob(JobOptions{Cycles: true, Events: []uint32{17, 3}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := j.Submit(context.Background())
	if want := uint64(12345 + 1<<32); err != nil || r.Cycles != want || !slices.Equal(r.Events, []uint64{17, 3}) {
		t.Errorf("got %+v, %v, want %d cycles, events 17 and 3", r, err, want)
	}
	if _, err := n.NewJob(JobOptions{Events: make([]uint32, 9)}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("nine events: got %v, want %v", err, ErrUnsupported)
	}
}

func TestFVPOpen(t *testing.T) {
	folder := ethosutest.InstallFVPs(t)
	u65 := filepath.Join(folder, "FVP_Corstone_SSE-300_Ethos-U65")
	u55 := programOf(t, ethosutest.Find(t, "u55-128/add/d0"))
	for _, c := range []struct {
		name string
		want error // from opening, or from loading a program for the U55
		text string
	}{
		{name: "fvp:" + folder},
		{name: "fvp:" + filepath.Join(folder, "FVP_Corstone_SSE-300_Ethos-U55")},
		{name: "fvp:" + u65, want: ErrUnsupported, text: "models the Ethos-U65"},
		{name: "fvp:" + t.TempDir(), want: ErrMissing, text: "no FVP_Corstone_SSE-300_Ethos-U55 in"},
		{name: "fvp:/nowhere", want: ErrMissing, text: "/nowhere"},
		{name: "fvp", want: ErrMissing, text: "is not in PATH"},
	} {
		t.Setenv("PATH", "/nowhere")
		d, _, err := Load(c.name, u55)
		if err == nil {
			d.Close()
		}
		if !errors.Is(err, c.want) || c.want != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want %v: %s", c.name, err, c.want, c.text)
		}
	}
	t.Setenv("PATH", folder)
	if got := fvpDriver.Probe(); got.State != Loaded || !strings.Contains(got.Reason, u65) {
		t.Errorf("probe: got %v: %s, want %v with %s", got.State, got.Reason, Loaded, u65)
	}
	t.Setenv("PATH", "/nowhere")
	if got := fvpDriver.Probe(); got.State != Skipped || !strings.Contains(got.Reason, "--fvp") || len(got.Paths) > 0 {
		t.Errorf("probe: got %v: %s, want %v", got.State, got.Reason, Skipped)
	}
}

// TestFVPNested finds models where an installer puts them.
func TestFVPNested(t *testing.T) {
	folder := ethosutest.InstallFVPs(t)
	deep := filepath.Join(t.TempDir(), "a [b]")
	if err := os.MkdirAll(filepath.Join(deep, "models"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(folder, filepath.Join(deep, "models", "Linux64_GCC-9.3")); err != nil {
		t.Fatal(err)
	}
	path, err := fvp.Find(deep, programOf(t, ethosutest.Find(t, "u85-256/add/d0")).Config.Family)
	if want := filepath.Join(deep, "models", "Linux64_GCC-9.3", "FVP_Corstone_SSE-320"); err != nil || path != want {
		t.Errorf("got %q, %v, want %q", path, err, want)
	}
}

// TestFVPTooLarge requests more memory than a model has.
func TestFVPTooLarge(t *testing.T) {
	d, _ := openFakeFVP(t)
	p := *programOf(t, ethosutest.Find(t, "u55-128/add/d0"))
	p.Regions[1].Size = 300 << 20
	_, err := newJob(t, d, &p).Submit(context.Background())
	if want := fmt.Sprintf("scratch of %d bytes", 300<<20); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %v: %s", err, ErrUnsupported, want)
	}
}
