package session

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/bytesize"
	"github.com/etrun-go/etrun/cmd/etrun/internal/input"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/delegate/ethosu"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	hal "github.com/etrun-go/etrun/hal/ethosu"
)

// Options say how a program is opened: the flags of every command that opens one. Say
// must be set.
type Options struct {
	Seed     uint64
	Threads  int                      // thread budget, 0 for the processors that the process may use
	Device   string                   // of Ethos-U delegates
	NPUTrace func(*ethosu.TraceEvent) // hears of operations on the software NPU; nil for none
	// Calibrate says how outputs with a stale type are quantised; nil for nobody. QParams
	// are such quantisations in front of those of the command line.
	Calibrate func(*ethosu.Calibration) (delegate.Quantization, error)
	QParams   []ethosu.Quantization
	ELF       string                           // an executor_runner to run whole programs on Arm's model, or empty
	Lower     string                           // see etrun.Lowering; empty for the usual way
	Static    bool                             // look only: delegates are checked without packing weights or opening devices
	Values    bool                             // observers see values inside delegates, where they can be seen
	Say       func(format string, args ...any) // says one line to the user

	data []string

	maxMemory bytesize.Size
	xnnpack   string
	repair    string
	weights   string
	fvp       string
	qparams   quantizations
	minProfit time.Duration
	plan      string
	strict    bool
	mmap      bool

	flags *pflag.FlagSet // that it has its values from
}

// given reports a flag that the command line has.
func (o *Options) given(flag string) bool { return o.flags != nil && o.flags.Changed(flag) }

// AddFlags adds the flags of commands that run programs, but for those that the command
// has already.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	o.AddFileFlags(flags)
	flags.Uint64Var(&o.Seed, "seed", 0, "seed `N` of random inputs and of operators that draw random numbers")
	flags.StringVar(&o.xnnpack, "xnnpack", string(xnnpack.EngineAuto), "XNNPACK `ENGINE`: auto, native or reference")
	flags.StringVar(&o.weights, "weights-cache", "",
		"keep packed XNNPACK weights in `FOLDER`, private to this user, for later runs; with --mmap processes share them")
	flags.StringVar(&o.Device, "device", "auto", "Ethos-U `DEVICE`: auto, npu (the software NPU), another driver's name, or a device's path")
	flags.StringVar(&o.fvp, "fvp", "",
		"run Ethos-U delegates on Arm's model at `PATH`, its program or a folder with it (with --device fvp alone: one in PATH)")
	flags.StringVar(&o.plan, "plan", "auto", "memory plan, `MODE`: auto (the smaller safe one), file, own or naive")
	flags.StringVar(&o.Lower, "lower", string(etrun.LowerRewrite),
		"lowering at load, `MODE`: off, rewrite (chains of instructions become cheaper ones), auto (and XNNPACK takes the parts "+
			"that it is estimated to run faster), tune (auto, but what is faster is measured; with --weights-cache later runs know it), "+
			"or verify (auto, and each output's distance from what it is with off)")
	flags.DurationVar(&o.minProfit, "min-profit", etrun.MinProfit,
		"with --lower: by how much an execute must become faster by a part that is taken, as estimated; negative: every part is taken")
}

// ShowValues has observers see all values, those inside delegates too, and the program
// executed as the file has it, unless the command line says how it is lowered.
func (o *Options) ShowValues() {
	o.Values = true
	if !o.given("lower") {
		o.Lower = string(etrun.LowerOff)
	}
}

// With is a copy with further flags, as on a command line.
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
	return with, with.check()
}

// AddFileFlags adds the flags of commands that only look at programs.
func (o *Options) AddFileFlags(flags *pflag.FlagSet) {
	o.flags = flags
	flags.StringArrayVar(&o.data, "data", nil, "`FILE`.ptd with external weights; may be repeated")
	if flags.Lookup("threads") == nil {
		flags.IntVar(&o.Threads, "threads", 0, "thread budget `N` (default: the processors that the process may use)")
	}
	flags.Var(&o.maxMemory, "max-memory", "refuse, before allocating, what needs more than this, such as 64MiB")
	flags.Var(&o.qparams, "qparams", "`QUANT` of a delegate's output that the program declares with a stale type: "+
		"[METHOD/]DELEGATE:OUTPUT=SCALE,ZERO, or a FILE.json of them; may be repeated")
	flags.BoolVar(&o.strict, "strict-plan", false, "refuse a program whose own memory plan lets live values overlap, instead of planning anew")
	flags.StringVar(&o.repair, "repair", "auto",
		"faults of exporters, `MODE`: auto repairs those that are known, off takes the program as it is written")
	flags.BoolVar(&o.mmap, "mmap", false, "map files instead of reading them; they must not change meanwhile")
}

// choices are the flags that take one of a few words; empty is the first.
func (o *Options) choices() []choice {
	return []choice{
		{"xnnpack", o.xnnpack, engineNames()},
		{"repair", o.repair, []string{"auto", "off"}},
		{"lower", o.Lower, lowerModes},
		{"plan", o.plan, slices.Sorted(maps.Keys(planModes))},
	}
}

// engineNames are the words of --xnnpack.
func engineNames() (names []string) {
	for _, e := range xnnpack.Engines {
		names = append(names, string(e))
	}
	return names
}

// lowerModes are the words of --lower.
var lowerModes = []string{string(etrun.LowerOff), string(etrun.LowerRewrite), string(etrun.LowerAuto), string(etrun.LowerTune),
	string(etrun.LowerVerify)}

// planModes are the words of --plan.
var planModes = map[string]etrun.PlanMode{
	"auto": etrun.PlanAuto, "file": etrun.PlanFile, "own": etrun.PlanOwn, "naive": etrun.PlanNaive,
}

type choice struct {
	flag, value string
	words       []string
}

func (o *Options) check() error {
	for _, c := range o.choices() {
		if c.value != "" && !slices.Contains(c.words, c.value) {
			return Usage("--%s %q, want one of %s", c.flag, c.value, strings.Join(c.words, ", "))
		}
	}
	if o.Threads < 0 {
		return Usage("--threads %d", o.Threads)
	}
	if o.fvp != "" && o.Device != "auto" && o.Device != "fvp" {
		return Usage("--fvp with --device %s", o.Device)
	}
	return nil
}

// deviceName is the device that is asked for.
func (o *Options) deviceName() string {
	if o.fvp != "" {
		return hal.FVPPrefix + o.fvp
	}
	return o.Device
}

// OpenProgram opens a program as the flags say, with every backend of this build and with
// further options. path names it in errors.
func (o *Options) OpenProgram(ctx context.Context, path string, from etrun.Source, options ...etrun.Option) (*etrun.Program, error) {
	p, err := o.open(ctx, from, options)
	if err != nil {
		return nil, o.nameForeign(ctx, path, err)
	}
	return p, nil
}

// open opens a program with every backend of this build, and with further options.
func (o *Options) open(ctx context.Context, from etrun.Source, options []etrun.Option) (*etrun.Program, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	quantizations, err := o.qparams.read(ctx)
	if err != nil {
		return nil, err
	}
	quantizations = append(slices.Clone(o.QParams), quantizations...)
	options = append(options, etrun.WithPlan(planModes[o.plan]), etrun.WithReusableInputs())
	if o.Lower != "" {
		options = append(options, etrun.WithLowering(etrun.Lowering(o.Lower)), etrun.WithMinProfit(o.minProfit), etrun.WithTuning(o.weights))
	}
	if o.strict {
		options = append(options, etrun.WithStrictPlan())
	}
	if o.repair == "off" {
		options = append(options, etrun.WithoutRepair())
	}
	if o.mmap {
		options = append(options, etrun.WithMmap())
	}
	var data []string
	for _, path := range o.data {
		data = append(data, input.Stdin(path))
	}
	return etrun.OpenSource(ctx, from, append(options,
		etrun.WithDelegates(o.backends(quantizations)...),
		etrun.WithDataFiles(data...),
		etrun.WithThreads(o.Threads),
		etrun.WithMaxMemory(int64(o.maxMemory)),
		etrun.WithSeed(o.Seed),
	)...)
}

// backends are those of this build, as the flags want them.
func (o *Options) backends(quantizations []ethosu.Quantization) []delegate.Backend {
	if o.Static {
		return append(all.Backends(), xnnpack.Backend{Engine: xnnpack.EngineReference, KeepConstants: true}, ethosu.Backend{QParams: quantizations, Device: "npu"})
	}
	x := xnnpack.Backend{WeightsCache: o.weights, MapWeights: o.mmap && o.weights != "", Values: o.Values}
	if o.xnnpack != "" && o.xnnpack != string(xnnpack.EngineAuto) {
		x.Engine = xnnpack.Engine(o.xnnpack)
	}
	e := ethosu.Backend{QParams: quantizations, Trace: o.NPUTrace, Calibrate: o.Calibrate}
	if device := o.deviceName(); device != "" && device != "auto" {
		e.Device = device
	}
	return append(all.Backends(), x, e)
}

// ProgramLimit bounds the bytes of a program's file, 0 for no bound.
func (o *Options) ProgramLimit() int64 { return int64(o.maxMemory) }

// Mmap reports that files are to be mapped.
func (o *Options) Mmap() bool { return o.mmap }

// InputLimit bounds the bytes of all inputs, and what making them takes.
func (o *Options) InputLimit() int64 {
	if o.maxMemory > 0 {
		return int64(o.maxMemory)
	}
	return 1 << 30
}

// Words are the words that flags take one of.
func Words() map[string][]string {
	words := make(map[string][]string)
	for _, c := range new(Options).choices() {
		words[c.flag] = c.words
	}
	return words
}
