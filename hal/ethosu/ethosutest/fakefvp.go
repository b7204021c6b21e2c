package ethosutest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
	"github.com/etrun-go/etrun/hal/ethosu/npu"
)

// FVPFault is the environment variable that selects the fault of a fake model.
const FVPFault = "ETRUN_TEST_FVP_FAULT"

// fvpLog is the file in the models' folder to which a fake model appends its arguments.
const fvpLog = "started.txt"

// InstallFVPs creates the models' executables in a folder. They are the test binary itself, whose
// TestMain must call [RunFVP].
func InstallFVPs(t testing.TB) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for _, name := range []string{"FVP_Corstone_SSE-300_Ethos-U55", "FVP_Corstone_SSE-300_Ethos-U65", "FVP_Corstone_SSE-320"} {
		if err := os.Symlink(self, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// Starts returns the arguments of the fake models that were started from a folder.
func Starts(t testing.TB, folder string) [][]string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(folder, fvpLog))
	if err != nil {
		t.Fatal(err)
	}
	var out [][]string
	for line := range strings.Lines(string(b)) {
		out = append(out, strings.Split(strings.TrimSuffix(line, "\n"), "\x00"))
	}
	return out
}

// RunProgram runs a .pte file, as executor_runner does.
type RunProgram func(program []byte, inputs [][]byte) ([][]byte, error)

// RunFVP acts as a model, and does not return, if the test binary was started under a model's name.
// run may be nil.
func RunFVP(run RunProgram) {
	if !strings.HasPrefix(filepath.Base(os.Args[0]), "FVP_") {
		return
	}
	f := &fakeFVP{fault: os.Getenv(FVPFault), values: map[string]string{}, in: bufio.NewReader(os.Stdin), run: run}
	if err := f.play(); err != nil {
		fmt.Printf("E: %v\n", err)
		os.Exit(2)
	}
	os.Exit(0)
}

// fakeFVP is a model with a software NPU. It executes no instructions but implements the firmware's
// protocol itself.
type fakeFVP struct {
	fault  string
	values map[string]string // of -C
	image  string            // of -a
	limit  string            // of --timelimit
	family isa.Family
	cpu    string
	config uint32
	folder string
	in     *bufio.Reader
	pools  [2][]byte
	run    RunProgram
}

func (f *fakeFVP) play() error {
	log, err := os.OpenFile(filepath.Join(filepath.Dir(os.Args[0]), fvpLog), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	fmt.Fprintln(log, strings.Join(os.Args[1:], "\x00"))
	log.Close()
	if err := f.arguments(os.Args[1:]); err != nil {
		return err
	}
	fmt.Println("telnetterminal0: Listening for serial connection on port 5000")
	if f.fault == "license" {
		fmt.Println("License checkout failed")
		os.Exit(1)
	}
	if line, ok := f.values[f.cpu+".semihosting-cmd_line"]; ok {
		return f.executor(strings.Fields(line))
	}
	return f.firmware()
}

// boards are the required parameters with their values.
var boards = map[string][]string{
	"FVP_Corstone_SSE-300": {"mps3_board.visualisation.disable-visualisation=1", "mps3_board.telnetterminal0.start_telnet=0",
		"mps3_board.uart0.out_file=-", "mps3_board.uart0.shutdown_on_eot=1"},
	"FVP_Corstone_SSE-320": {"mps4_board.visualisation.disable-visualisation=1", "vis_hdlcd.disable_visualisation=1",
		"mps4_board.telnetterminal0.start_telnet=0", "mps4_board.uart0.out_file=-", "mps4_board.uart0.unbuffered_output=1",
		"mps4_board.uart0.shutdown_on_eot=1"},
}

func (f *fakeFVP) arguments(args []string) error {
	for ; len(args) > 1; args = args[2:] {
		switch key, value, _ := strings.Cut(args[1], "="); args[0] {
		case "-C":
			f.values[key] = value
		case "-a":
			f.image = args[1]
		case "--timelimit":
			f.limit = args[1]
		default:
			return fmt.Errorf("unknown option %q", args[0])
		}
	}
	name := filepath.Base(os.Args[0])
	npu := "ethosu"
	f.cpu, f.family = "cpu0", isa.U55
	switch {
	case strings.HasSuffix(name, "U65"):
		f.family = isa.U65
	case strings.HasSuffix(name, "320"):
		f.family, f.cpu, npu = isa.U85, "mps4_board.subsystem.cpu0", "mps4_board.subsystem.ethosu"
	}
	for board, wanted := range boards {
		for _, w := range wanted {
			if key, value, _ := strings.Cut(w, "="); strings.HasPrefix(name, board) && f.values[key] != value {
				return fmt.Errorf("parameter %s is %q, want %q", key, f.values[key], value)
			}
		}
	}
	macs, err := strconv.Atoi(f.values[npu+".num_macs"])
	if err != nil || macs < 32 {
		return fmt.Errorf("parameter %s.num_macs is %q", npu, f.values[npu+".num_macs"])
	}
	f.config = uint32(f.family)<<28 | uint32(bits.Len(uint(macs))-1)
	if f.family == isa.U85 {
		f.config |= 1 << 4
	}
	for key, want := range map[string]string{".semihosting-enable": "1", ".semihosting-stack_base": "0", ".semihosting-heap_limit": "0"} {
		if got := f.values[f.cpu+key]; got != want {
			return fmt.Errorf("parameter %s is %q, want %q", f.cpu+key, got, want)
		}
	}
	f.folder = f.values[f.cpu+".semihosting-cwd"]
	b, err := os.ReadFile(f.image)
	if err == nil && !bytes.HasPrefix(b, []byte("\x7fELF")) {
		err = fmt.Errorf("%s is no ELF", f.image)
	}
	return err
}

func (f *fakeFVP) file(name string) string { return filepath.Join(f.folder, name) }

// line waits for a line from the host; ok is false at the end of its input.
func (f *fakeFVP) line() (ok bool) {
	_, err := f.in.ReadString('\n')
	return err == nil
}

// firmware implements the firmware's protocol.
func (f *fakeFVP) firmware() error {
	f.pools = [2][]byte{make([]byte, 2<<20), make([]byte, 64<<20)}
	config := f.config
	if f.fault == "other npu" {
		config ^= 3
	}
	fmt.Printf("etrun: firmware %08x %08x %08x %08x\n", 1, config, len(f.pools[0]), len(f.pools[1]))
	for f.line() {
		sequence, err := f.job()
		switch {
		case f.fault == "hang":
			time.Sleep(time.Hour)
		case f.fault == "exit":
			fmt.Println("Info: simulation stopped")
			return nil
		case f.fault == "crash":
			return fmt.Errorf("simulator error")
		case f.fault == "npu":
			fmt.Printf("etrun: done %08x %08x %08x\n", sequence, 4, 0x14)
		case err != nil:
			fmt.Printf("W: %v\n", err)
			fmt.Printf("etrun: done %08x %08x %08x\n", sequence, 1, 0)
		default:
			fmt.Printf("etrun: done %08x %08x %08x\n", sequence, 0, 0)
		}
	}
	return nil
}

// jobFile reads job.bin.
type jobFile struct {
	*bytes.Reader
	pools *[2][]byte
}

func (j *jobFile) word() (w uint32) {
	binary.Read(j, binary.LittleEndian, &w) // at the end it is 0, which no check accepts
	return w
}

// memory returns the memory of a range.
func (j *jobFile) memory() ([]byte, error) {
	pool, offset, size := j.word(), uint64(j.word()), uint64(j.word())
	if pool >= 2 || offset+size > uint64(len(j.pools[pool])) {
		return nil, fmt.Errorf("range %#x+%#x of pool %d", offset, size, pool)
	}
	return j.pools[pool][offset : offset+size : offset+size], nil
}

func (f *fakeFVP) job() (sequence uint32, err error) {
	b, err := os.ReadFile(f.file("job.bin"))
	if err != nil {
		return 0, err
	}
	j := &jobFile{bytes.NewReader(b), &f.pools}
	if magic := j.word(); magic != 0x314a5445 {
		return 0, fmt.Errorf("job.bin starts with %#x", magic)
	}
	sequence = j.word()
	config, count := j.word(), j.word()
	if (config^f.config)&0xf00000ff != 0 {
		return sequence, fmt.Errorf("a job for %#x on %#x", config, f.config)
	}
	stream, err := j.memory()
	var mem npu.Memory
	for i := range mem {
		var e error
		if mem[i], e = j.memory(); e != nil {
			err = e
		}
		if len(mem[i]) == 0 {
			mem[i] = nil
		}
	}
	if err != nil {
		return sequence, err
	}
	events := make([]uint32, 9)
	for i := range events {
		events[i] = j.word()
	}
	reads, writes := j.word(), j.word()
	for range reads {
		to, err := j.memory()
		if err == nil {
			_, err = io.ReadFull(j, to)
		}
		if err != nil {
			return sequence, err
		}
	}
	c, err := isa.ParseConfig(config, 0)
	if err == nil {
		err = Execute(c, stream, &mem, 1)
	}
	if err != nil {
		return sequence, err
	}
	return sequence, f.reply(j, sequence, count, events[1:], writes)
}

func (f *fakeFVP) reply(j *jobFile, sequence, count uint32, events []uint32, writes uint32) error {
	switch f.fault {
	case "old reply":
		sequence--
	case "output count":
		writes += 7
	}
	words := []uint32{0x31525445, sequence, 0, 0, 0, 12345 * count, count}
	words = append(append(words, events...), writes)
	out := &bytes.Buffer{}
	binary.Write(out, binary.LittleEndian, words) // to memory
	for range writes {
		from, err := j.memory()
		if err != nil {
			return err
		}
		out.Write(from)
	}
	switch f.fault {
	case "short reply":
		out.Truncate(out.Len() - 1)
	case "no reply":
		return nil
	case "long reply":
		out.WriteByte(0)
	}
	return os.WriteFile(f.file("reply.bin"), out.Bytes(), 0o600)
}

// executor acts as an executor_runner.
func (f *fakeFVP) executor(args []string) error {
	var program, prefix string
	var inputs []string
	server := false
	for i := 1; i+1 < len(args); i += 2 {
		switch args[i] {
		case "-m":
			program = args[i+1]
		case "-o":
			prefix = args[i+1]
		case "-i":
			inputs = append(inputs, args[i+1])
		case "--server_mode":
			server = args[i+1] == "true"
		default:
			return fmt.Errorf("executor_runner: unknown option %q", args[i])
		}
	}
	if !server {
		if f.limit == "" {
			return fmt.Errorf("no --timelimit")
		}
		return f.infer(program, prefix, inputs)
	}
	for n := 0; f.line(); n++ {
		if err := f.infer(program, prefix, inputs); err != nil {
			return err
		}
		fmt.Printf("SERVER_INFERENCE_DONE %d\n", n)
	}
	return nil
}

func (f *fakeFVP) infer(program, prefix string, inputs []string) error {
	switch f.fault {
	case "hang":
		time.Sleep(time.Hour)
	case "hard fault":
		fmt.Println("Hard fault. irq=-13, pc=0x10001234")
		return nil // the model exits normally
	case "error line":
		fmt.Println("E executorch:arm_executor_runner.cpp:1] Program loading failed")
		return nil
	case "crash":
		return fmt.Errorf("simulator error")
	}
	var in [][]byte
	for _, name := range append([]string{program}, inputs...) {
		b, err := os.ReadFile(f.file(name))
		if err != nil {
			return err
		}
		in = append(in, b)
	}
	outputs, err := f.run(in[0], in[1:])
	if err != nil {
		return err
	}
	if f.fault == "output count" {
		outputs = append(outputs, []byte("more"))
	}
	for i, b := range outputs {
		if f.fault == "short output" {
			b = b[:len(b)/2]
		}
		if err := os.WriteFile(f.file(fmt.Sprintf("%s-%d.bin", prefix, i)), b, 0o600); err != nil {
			return err
		}
	}
	return nil
}
