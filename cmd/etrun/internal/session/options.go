package session

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/bytesize"
	"github.com/etrun-go/etrun/cmd/etrun/internal/input"
	"github.com/etrun-go/etrun/cmd/etrun/internal/nearest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/delegate/ethosu"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/hal/cpu"
	hal "github.com/etrun-go/etrun/hal/ethosu"
)

// Options are the flags of all commands that open programs. Say must be set.
type Options struct {
	Seed     uint64
	Threads  int                      // thread budget, 0 for the available processors
	Device   string                   // device for Ethos-U delegates
	NPUTrace func(*ethosu.TraceEvent) // receives operations on the software NPU; may be nil
	// Calibrate returns the quantization of outputs with a stale type; may be nil. QParams
	// are such quantizations; they precede those of the command line.
	Calibrate func(*ethosu.Calibration) (delegate.Quantization, error)
	QParams   []ethosu.Quantization
	ELF       string // executor_runner that runs whole programs on Arm's model, or empty
	Lower     string // see etrun.Lowering; empty for the default
	Static    bool   // check only: no packed weights, no open devices
	Constants bool   // keep the bytes of all constants readable
	Describe  bool   // nothing runs: files are mapped as with Local, and their large constants stay there, see [etrun.WithoutRuns]
	// Local commands end with what they run: they map files that cannot change, see [etrun.WithLeases], unless the command line sets
	// --mmap, and a method may plan as much memory as the machine can spare.
	Local   bool
	Serves  bool // the memory that the system has left when a program is opened says nothing, see [etrun.WithAvailableMemory]
	Unfused bool // delegates have the nodes of their payloads
	Values  bool // observers receive values inside delegates, if exposed
	// Check checks the bytes of each file that determines results, before they are used; may be nil.
	Check func(ctx context.Context, path string, data []byte) error
	Say   func(format string, args ...any) // writes one line to the user
	// Replaced are used instead of this build's backends with the same IDs.
	Replaced []delegate.Backend
	// Indexes makes random integers positions of what the program indexes with them, as far as Attempt says, below Attempts.
	Indexes bool
	Attempt int
	// ExtraData are .ptd files of the program, in addition to those of --data.
	ExtraData []etrun.Source

	data []string

	maxMemory bytesize.Size
	xnnpack   string
	repair    string
	weights   string
	fvp       string
	qparams   quantizations
	plan      string
	strict    bool
	cache     string
	mmap      bool

	flags *pflag.FlagSet // source of the values
}

// isSet reports whether the command line sets a flag.
func (o *Options) isSet(flag string) bool { return o.flags != nil && o.flags.Changed(flag) }

// AddFlags adds the flags of commands that run programs, except those that the command
// already has.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	o.AddFileFlags(flags)
	flags.Uint64Var(&o.Seed, "seed", 0, "seed `N` for random inputs and for operators with random numbers")
	flags.StringVar(&o.xnnpack, "xnnpack", string(xnnpack.EngineAuto),
		"XNNPACK `ENGINE`: auto, native (libXNNPACK) or go (the exact one: NaN and infinities as in PyTorch)")
	flags.StringVar(&o.weights, "weights-cache", "",
		"cache packed XNNPACK weights in `FOLDER`, private to this user; with --mmap processes share them")
	flags.StringVar(&o.Device, "device", "auto",
		"Ethos-U `DEVICE`: auto, npu (software NPU), the name of another driver, or the path of a device")
	flags.StringVar(&o.fvp, "fvp", "",
		"run Ethos-U delegates on Arm's Fixed Virtual Platform at `PATH`, a program or its folder (--device fvp searches $PATH)")
	flags.StringVar(&o.plan, "plan", "auto", "memory plan `MODE`: auto (the smaller safe plan), file, own or naive")
	flags.StringVar(&o.cache, "kv-cache", "full",
		"numbers of the caches of language models, `TYPE`: full, as in the program, or half (float16 where it has float32: half of the memory)")
	flags.StringVar(&o.Lower, "lower", string(etrun.LowerAuto),
		"lowering at load, `MODE`: off, rewrite (replace chains of instructions by cheaper ones), auto (also run parts on XNNPACK "+
			"that are large enough to gain from it), all (also small parts), "+
			"or verify (like all, and compare the outputs with those of off)")
}

// ShowValues makes all values visible to observers, including those inside delegates, and
// turns lowering off unless the command line sets it.
func (o *Options) ShowValues() {
	o.Values = true
	o.AsInFile()
}

// AsInFile turns lowering off unless the command line sets it.
func (o *Options) AsInFile() {
	if !o.isSet("lower") {
		o.Lower = string(etrun.LowerOff)
	}
}

// With returns a copy with further flags, as on a command line.
func (o *Options) With(args []string) (*Options, error) {
	with := &Options{}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	with.AddFlags(flags)
	*with = *o
	with.flags = flags
	with.qparams = slices.Clone(o.qparams)
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("argument %q, want flags only", flags.Arg(0))
	}
	if err := RejectEmpty(flags); err != nil {
		return nil, err
	}
	return with, with.check()
}

// AddFileFlags adds the flags of commands that only inspect programs.
func (o *Options) AddFileFlags(flags *pflag.FlagSet) {
	o.flags = flags
	flags.Var(Texts(&o.data), "data", "`FILE`.ptd with external weights; may be repeated")
	if flags.Lookup("threads") == nil {
		flags.IntVar(&o.Threads, "threads", 0, "number of threads `N` (default: the available processors)")
	}
	flags.Var(&o.maxMemory, "max-memory", "fail before allocating if the model needs more than `SIZE`, such as 64MiB")
	flags.Var(&o.qparams, "qparams", "quantization `QUANT` of a delegate's output with a stale type: "+
		"[METHOD/]DELEGATE:OUTPUT=SCALE,ZERO, or a FILE.json of them; may be repeated")
	flags.BoolVar(&o.strict, "strict-plan", false, "fail if live values overlap in the program's own memory plan, instead of replanning, or if a state is a constant of a payload")
	flags.StringVar(&o.repair, "repair", "auto",
		"faults of exporters, `MODE`: auto repairs known ones, off runs the program unchanged")
	flags.BoolVar(&o.mmap, "mmap", false, "map files instead of reading them; they must not change during the run")
}

// choices are the flags with a fixed set of values; empty is the default.
func (o *Options) choices() []choice {
	return []choice{
		{"xnnpack", o.xnnpack, engineNames()},
		{"repair", o.repair, []string{"auto", "off"}},
		{"kv-cache", o.cache, []string{"full", "half"}},
		{"lower", o.Lower, lowerModes},
		{"plan", o.plan, slices.Sorted(maps.Keys(planModes))},
	}
}

// deprecatedGo is the value of --xnnpack that earlier versions had for the Go engine.
const deprecatedGo = "reference"

// engineNames are the values of --xnnpack.
func engineNames() (names []string) {
	for _, e := range xnnpack.Engines {
		names = append(names, string(e))
	}
	return names
}

// lowerModes are the values of --lower.
var lowerModes = []string{string(etrun.LowerOff), string(etrun.LowerRewrite), string(etrun.LowerAuto), string(etrun.LowerAll),
	string(etrun.LowerVerify)}

// planModes are the values of --plan.
var planModes = map[string]etrun.PlanMode{
	"auto": etrun.PlanAuto, "file": etrun.PlanFile, "own": etrun.PlanOwn, "naive": etrun.PlanNaive,
}

type choice struct {
	flag, value string
	words       []string
}

func (o *Options) check() error {
	if o.xnnpack == deprecatedGo {
		o.Say("note: --xnnpack %s is called --xnnpack %s now", deprecatedGo, xnnpack.EngineGo)
		o.xnnpack = string(xnnpack.EngineGo)
	}
	for _, c := range o.choices() {
		if c.value != "" && !slices.Contains(c.words, c.value) {
			return Usage("--%s %q, want one of %s%s", c.flag, c.value, strings.Join(c.words, ", "), nearest.Hint(c.value, c.words))
		}
	}
	if o.Threads < 0 || o.Threads > cpu.MaxThreads {
		return Usage("--threads %d, want 0 to %d", o.Threads, cpu.MaxThreads)
	}
	if err := o.checkDevice(); err != nil {
		return err
	}
	if o.fvp != "" && o.Device != "auto" && o.Device != "fvp" {
		return Usage("--fvp with --device %s", o.Device)
	}
	return nil
}

// checkDevice rejects what is neither the name of a driver nor a path.
func (o *Options) checkDevice() error {
	names := []string{"auto"}
	for _, d := range hal.Drivers() {
		names = append(names, d.Name)
	}
	if o.Device == "" || slices.Contains(names, o.Device) || strings.Contains(o.Device, "/") || strings.HasPrefix(o.Device, hal.FVPPrefix) {
		return nil
	}
	if _, err := os.Stat(o.Device); err == nil {
		return nil
	}
	return Usage("--device %q, want one of %s, or the path of an Ethos-U device%s", o.Device, strings.Join(names, ", "),
		nearest.Hint(o.Device, names))
}

// deviceName is the requested device.
func (o *Options) deviceName() string {
	if o.fvp != "" {
		return hal.FVPPrefix + o.fvp
	}
	return o.Device
}

// OpenProgram opens a program with the flags, every backend of this build and further
// options. path is its name in errors.
func (o *Options) OpenProgram(ctx context.Context, path string, from etrun.Source, options ...etrun.Option) (*etrun.Program, error) {
	p, err := o.open(ctx, from, options)
	if err != nil {
		return nil, o.nameForeign(ctx, path, err)
	}
	return p, nil
}

// DataFiles returns the files of --data.
func (o *Options) DataFiles() []string { return slices.Clone(o.data) }

// open opens a program with every backend of this build, and with further options.
func (o *Options) open(ctx context.Context, from etrun.Source, options []etrun.Option) (*etrun.Program, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	quantizations, err := o.qparams.read(ctx, o.Check)
	if err != nil {
		return nil, err
	}
	quantizations = append(slices.Clone(o.QParams), quantizations...)
	options = append(options, etrun.WithPlan(planModes[o.plan]), etrun.WithReusableInputs())
	if o.Lower != "" {
		options = append(options, etrun.WithLowering(etrun.Lowering(o.Lower)))
	}
	if o.Check != nil {
		options = append(options, etrun.WithFileCheck(func(name string, data []byte) error { return o.Check(ctx, name, data) }))
	}
	if o.cache == "half" {
		options = append(options, etrun.WithHalfState())
	}
	if o.strict {
		options = append(options, etrun.WithStrictPlan())
	}
	if o.repair == "off" {
		options = append(options, etrun.WithoutRepair())
	}
	switch {
	case o.mmap:
		options = append(options, etrun.WithMmap())
	case (o.Local || o.Describe) && !o.isSet("mmap"):
		options = append(options, etrun.WithLeases())
	}
	switch {
	case o.Describe && o.xnnpack != string(xnnpack.EngineNative): // the library shares weights that are equal
		options = append(options, etrun.WithoutRuns())
	case !o.Serves && o.maxMemory == 0 && (o.weights == "" || !o.mmap): // weights that are mapped do not count
		options = append(options, etrun.WithAvailableMemory(nil))
	}
	if o.Local {
		options = append(options, etrun.WithLimits(etrun.Limits{PlannedBytes: max(spare(), int64(o.maxMemory))}))
	}
	if o.Static || o.Constants {
		options = append(options, etrun.WithConstants())
	}
	var data []string
	for _, path := range o.data {
		data = append(data, input.Stdin(path))
	}
	return etrun.OpenSource(ctx, from, append(options,
		etrun.WithData(o.ExtraData...),
		etrun.WithDelegates(o.backends(quantizations)...),
		etrun.WithDataFiles(data...),
		etrun.WithThreads(o.Threads),
		etrun.WithMaxMemory(int64(o.maxMemory)),
		etrun.WithSeed(o.Seed),
	)...)
}

// spare is three quarters of the memory of the machine, or of the process's control group, and at least the default of
// [etrun.Limits]: caches of many positions are planned as a whole, but take memory only as far as they are filled.
func spare() int64 { return max(cpu.Memory()/4*3, 1<<30) }

// Backends returns the backends of this build.
func (o *Options) Backends() []delegate.Backend { return o.backends(nil) }

// MaxMemory is the limit of --max-memory, 0 for none.
func (o *Options) MaxMemory() int64 { return int64(o.maxMemory) }

// backends returns the backends of this build, configured by the flags.
func (o *Options) backends(quantizations []ethosu.Quantization) []delegate.Backend {
	if o.Static {
		return append(all.Backends(), xnnpack.Backend{Engine: xnnpack.EngineGo, KeepConstants: true},
			ethosu.Backend{QParams: quantizations, Device: "npu"})
	}
	x := xnnpack.Backend{WeightsCache: o.weights, MapWeights: o.mmap && o.weights != "", Values: o.Values, KeepConstants: o.Constants, Unfused: o.Unfused}
	if o.xnnpack != "" && o.xnnpack != string(xnnpack.EngineAuto) {
		x.Engine = xnnpack.Engine(o.xnnpack)
	}
	e := ethosu.Backend{QParams: quantizations, Trace: o.NPUTrace, Calibrate: o.Calibrate}
	if device := o.deviceName(); device != "" && device != "auto" {
		e.Device = device
	}
	return append(append(all.Backends(), x, e), o.Replaced...)
}

// ProgramLimit is the maximum size of a program's file: --max-memory, or the default of [etrun.Limits].
func (o *Options) ProgramLimit() int64 { return cmp.Or(int64(o.maxMemory), 8<<30) }

// Mmap reports whether files are mapped.
func (o *Options) Mmap() bool { return o.mmap }

// ReadFiles lets files be read, whether or not --mmap is given: later changes of a mapped file would change what was checked.
func (o *Options) ReadFiles() { o.mmap = false }

// InputLimit is the maximum memory of all inputs and their conversion.
func (o *Options) InputLimit() int64 {
	if o.maxMemory > 0 {
		return int64(o.maxMemory)
	}
	return 1 << 30
}

// Words returns the values of flags with a fixed set.
func Words() map[string][]string {
	words := make(map[string][]string)
	for _, c := range new(Options).choices() {
		words[c.flag] = c.words
	}
	return words
}
