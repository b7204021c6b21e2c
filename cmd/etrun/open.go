package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/delegate/ethosu"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	hal "github.com/etrun-go/etrun/hal/ethosu"
)

// openFlags are the flags of every command that opens a program.
type openFlags struct {
	data      []string
	threads   int
	maxMemory byteSize
	seed      uint64
	xnnpack   string
	weights   string
	device    string
	fvp       string
	qparams   quantizations
	npuTrace  func(*ethosu.TraceEvent) // nil for none; no flag
	lower     string
	minProfit time.Duration
	plan      string
	strict    bool
	mmap      bool
}

func (f *openFlags) add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.data, "data", nil, "`FILE`.ptd with external weights; may be repeated")
	flags.IntVar(&f.threads, "threads", 0, "thread budget `N` (default: the processors that the process may use)")
	flags.Var(&f.maxMemory, "max-memory", "refuse, before allocating, what needs more than this, such as 64MiB")
	flags.Uint64Var(&f.seed, "seed", 0, "seed `N` of random inputs and of operators that draw random numbers")
	flags.StringVar(&f.xnnpack, "xnnpack", string(xnnpack.EngineAuto), "XNNPACK `ENGINE`: auto, native or reference")
	flags.StringVar(&f.weights, "weights-cache", "", "keep packed XNNPACK weights in `FOLDER`, private to this user, for later runs; with --mmap processes share them")
	flags.StringVar(&f.device, "device", "auto", "Ethos-U `DEVICE`: auto, npu (the software NPU), another driver's name, or a device's path")
	flags.StringVar(&f.fvp, "fvp", "", "run Ethos-U delegates on Arm's model at `PATH`, its program or a folder with it (with --device fvp alone: one in PATH)")
	flags.Var(&f.qparams, "qparams", "quantisation `[METHOD/]DELEGATE:OUTPUT=SCALE,ZERO` of a delegate's output that the program declares with a stale type, or a FILE.json of them; may be repeated")
	flags.StringVar(&f.plan, "plan", "auto", "memory plan: auto (the smaller safe one), file, own or naive")
	flags.BoolVar(&f.strict, "strict-plan", false, "refuse a program whose own memory plan lets live values overlap, instead of planning anew")
	flags.BoolVar(&f.mmap, "mmap", false, "map files instead of reading them; they must not change meanwhile")
	flags.StringVar(&f.lower, "lower", string(etrun.LowerRewrite), "lowering at load, `MODE`: off, rewrite (chains of instructions become cheaper ones), auto (and XNNPACK takes the parts that it is estimated to run faster), or verify (auto, and each output's distance from what it is with off)")
	flags.DurationVar(&f.minProfit, "min-profit", etrun.MinProfit, "with --lower: by how much an execute must become faster by a part that is taken, as estimated; negative: every part is taken")
}

// choices are the flags that take one of a few words.
func (f *openFlags) choices() []choice {
	return []choice{
		{"xnnpack", f.xnnpack, engineNames()},
		{"lower", f.lower, []string{string(etrun.LowerOff), string(etrun.LowerRewrite), string(etrun.LowerAuto), string(etrun.LowerVerify)}},
		{"plan", f.plan, slices.Sorted(maps.Keys(planModes))},
	}
}

// engineNames are the words of --xnnpack.
func engineNames() (names []string) {
	for _, e := range xnnpack.Engines {
		names = append(names, string(e))
	}
	return names
}

// planModes are the words of --plan.
var planModes = map[string]etrun.PlanMode{
	"auto": etrun.PlanAuto, "file": etrun.PlanFile, "own": etrun.PlanOwn, "naive": etrun.PlanNaive,
}

type choice struct {
	flag, value string
	words       []string
}

func (f *openFlags) check() error {
	for _, c := range f.choices() {
		if !slices.Contains(c.words, c.value) {
			return usage("--%s %q, want one of %s", c.flag, c.value, strings.Join(c.words, ", "))
		}
	}
	if f.threads < 0 {
		return usage("--threads %d", f.threads)
	}
	if f.fvp != "" && f.device != "auto" && f.device != "fvp" {
		return usage("--fvp with --device %s", f.device)
	}
	return nil
}

// deviceName is the device that is asked for.
func (f *openFlags) deviceName() string {
	if f.fvp != "" {
		return hal.FVPPrefix + f.fvp
	}
	return f.device
}

// open opens a program with every backend of this build, and with further options.
func (f *openFlags) open(ctx context.Context, path string, more ...etrun.Option) (*etrun.Program, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	quantizations, err := f.qparams.read(ctx)
	if err != nil {
		return nil, err
	}
	options := append(more, etrun.WithPlan(planModes[f.plan]), etrun.WithReusableInputs(),
		etrun.WithLowering(etrun.Lowering(f.lower)), etrun.WithMinProfit(f.minProfit))
	if f.strict {
		options = append(options, etrun.WithStrictPlan())
	}
	if f.mmap {
		options = append(options, etrun.WithMmap())
	}
	return etrun.OpenSource(ctx, etrun.File(path), append(options,
		etrun.WithDelegates(f.backends(quantizations)...),
		etrun.WithDataFiles(f.data...),
		etrun.WithThreads(f.threads),
		etrun.WithMaxMemory(int64(f.maxMemory)),
		etrun.WithSeed(f.seed),
	)...)
}

// backends are those of this build, as the flags want them.
func (f *openFlags) backends(quantizations []ethosu.Quantization) []delegate.Backend {
	x := xnnpack.Backend{WeightsCache: f.weights, MapWeights: f.mmap && f.weights != ""}
	if f.xnnpack != string(xnnpack.EngineAuto) {
		x.Engine = xnnpack.Engine(f.xnnpack)
	}
	e := ethosu.Backend{QParams: quantizations, Trace: f.npuTrace}
	if device := f.deviceName(); device != "auto" {
		e.Device = device
	}
	return append(all.Backends(), x, e)
}

// warn says, once, what the program could not use.
func (a *app) warn(p *etrun.Program) {
	for _, w := range p.Warnings() {
		if !slices.Contains(a.warned, w) {
			a.warned = append(a.warned, w)
			a.note("warning: %s", w.Text)
		}
	}
}

// inputLimit bounds the bytes of all inputs, and what making them takes.
func (f *openFlags) inputLimit() int64 {
	if f.maxMemory > 0 {
		return int64(f.maxMemory)
	}
	return 1 << 30
}
