package prepare

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"io/fs"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"time"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/interpreter"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/cachefolder"
	"github.com/etrun-go/etrun/internal/openfile"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/lower"
)

// tuning is the measured times of a method's regions on this machine. With a folder they are stored
// in a file. Its name is a digest of everything that the times depend on: the program, the method,
// the backends, the processor, the number of threads, and this module. Format, little-endian:
//
//	magic, u32 CRC-32C of the rest, u32 number of regions
//	regions: u64 digest, u64 nanoseconds on operators, u64 on the backend
type tuning struct {
	times  map[uint64]lower.Times
	name   string // of the file, "" without a folder
	folder string
	dirty  bool     // there are new measurements
	faults []string // why the file was not read or written
}

const (
	tuningMagic  = "ETRUNTU1"
	tuningHeader = 16
	tuningRegion = 24
	maxTuned     = 1 << 14   // regions of a file
	maxTime      = time.Hour // of a region
)

var (
	castagnoli   = crc32.MakeTable(crc32.Castagnoli)
	errTuning    = errors.New("damaged")
	moduleOfThis = func() string {
		info, ok := debug.ReadBuildInfo()
		if !ok {
			return ""
		}
		return fmt.Sprint(info.GoVersion, info.Main, info.Settings)
	}
)

// newTuning reads the measurements of earlier processes.
func (l *load) newTuning(ctx context.Context) *tuning {
	t := &tuning{times: make(map[uint64]lower.Times), folder: l.Options.Tuning}
	if t.folder == "" {
		return t
	}
	h := sha256.New()
	fmt.Fprintln(h, tuningMagic, l.Method.Name, l.Pool.Size(), cpu.Processor(), moduleOfThis())
	for _, c := range l.compilers() {
		fmt.Fprintln(h, c.ID(), c.Version())
	}
	h.Write(l.Digest)
	t.name = fmt.Sprintf("%x.tuning", h.Sum(nil))
	if err := t.read(ctx); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.faults = append(t.faults, "stored measurements were not used: "+err.Error())
	}
	return t
}

func (t *tuning) read(ctx context.Context) error {
	folder, err := cachefolder.Open(t.folder)
	if err != nil {
		return err
	}
	defer folder.Close()
	f, err := openfile.OpenIn(ctx, folder, t.name, openfile.Rules{Limit: tuningHeader + maxTuned*tuningRegion})
	if err != nil {
		return err
	}
	defer f.Close()
	if err := openfile.CheckOwner(f.Info(), cachefolder.OthersWrite); err != nil {
		return err
	}
	data, err := f.ReadAll(func(n int) []byte { return make([]byte, n) })
	if err != nil {
		return err
	}
	return t.decode(data)
}

// decode reads all regions of a file, or none.
func (t *tuning) decode(data []byte) error {
	le := binary.LittleEndian
	if len(data) < tuningHeader || string(data[:8]) != tuningMagic || le.Uint32(data[8:]) != crc32.Checksum(data[12:], castagnoli) {
		return errTuning
	}
	n := int(le.Uint32(data[12:]))
	if n > maxTuned || len(data) != tuningHeader+n*tuningRegion {
		return errTuning
	}
	times := make(map[uint64]lower.Times, n)
	for b := data[tuningHeader:]; len(b) > 0; b = b[tuningRegion:] {
		portable, lowered := le.Uint64(b[8:]), le.Uint64(b[16:])
		if max(portable, lowered) > uint64(maxTime) || min(portable, lowered) == 0 {
			return errTuning
		}
		times[le.Uint64(b)] = lower.Times{Portable: time.Duration(portable), Lowered: time.Duration(lowered)}
	}
	t.times = times
	return nil
}

func (t *tuning) encode() []byte {
	le := binary.LittleEndian
	b := append([]byte(tuningMagic), make([]byte, tuningHeader-len(tuningMagic))...)
	for _, digest := range slices.Sorted(maps.Keys(t.times)) {
		of := t.times[digest]
		b = le.AppendUint64(b, digest)
		b = le.AppendUint64(b, uint64(of.Portable))
		b = le.AppendUint64(b, uint64(of.Lowered))
	}
	le.PutUint32(b[12:], uint32(len(t.times)))
	le.PutUint32(b[8:], crc32.Checksum(b[12:], castagnoli))
	return b
}

// keep writes the file if there are new measurements.
func (t *tuning) keep() {
	if t.name == "" || !t.dirty || len(t.times) > maxTuned {
		return
	}
	folder, err := cachefolder.Open(t.folder)
	if err == nil {
		err = cachefolder.Replace(folder, t.name, t.encode())
		folder.Close()
	}
	if err != nil {
		t.faults = append(t.faults, "measurements were not stored: "+err.Error())
	}
}

// regionDigest identifies a region within its method.
func regionDigest(by lowering.Compiler, g *lowering.Graph) uint64 {
	h := fnv.New64a()
	fmt.Fprintln(h, by.ID(), g.Inputs, g.Outputs)
	for i := range g.Calls {
		c := &g.Calls[i]
		fmt.Fprintln(h, c.Place, interpreter.Name(c), c.Args)
	}
	for i := range g.Values {
		v := &g.Values[i]
		fmt.Fprintln(h, v.Kind, v.DType, v.Sizes, v.DimOrder, v.Dynamism)
	}
	return h.Sum64()
}

// Bounds of a measurement, whose rounds alternate between the two sides.
const (
	tuningRounds = 5                     // at least
	tuningTime   = 20 * time.Millisecond // of all rounds, at least
	tuningRound  = 50 * time.Microsecond // of a round, at least, unless maxRuns is reached
	maxRuns      = 200
)

// tuningBytes is the memory for measuring a graph, in addition to its image.
func tuningBytes(g *lowering.Graph) int64 {
	n := interpreter.Bytes(g)
	for _, v := range slices.Concat(g.Inputs, g.Outputs, g.Outputs) {
		n += g.Values[v].NBytes()
	}
	return n
}

// measure runs a graph alternately on operators and on a unit of its image, with random inputs, and
// returns the minimum time of each.
func measure(ctx context.Context, g *lowering.Graph, pool *cpu.Pool, lowered delegate.Unit) (t lower.Times, err error) {
	sides := [2]tuned{{unit: interpreter.New(g, pool)}, {unit: lowered}}
	inputs := tuningInputs(g)
	for i := range sides {
		s := &sides[i]
		s.args = append(inputs[:len(inputs):len(inputs)], tuningTensors(g, g.Outputs)...)
		if err := s.begin(ctx); err != nil {
			return t, err
		}
	}
	begun := time.Now()
	for round := 0; round < tuningRounds || time.Since(begun) < tuningTime; round++ {
		for i := range sides {
			if ctx.Err() != nil {
				return t, context.Cause(ctx)
			}
			if err := sides[i].round(ctx); err != nil {
				return t, err
			}
		}
	}
	return lower.Times{Portable: sides[0].least, Lowered: sides[1].least}, nil
}

// tuned is one side of a measurement.
type tuned struct {
	unit  delegate.Unit
	args  []*tensor.Value
	count int // runs per round
	least time.Duration
}

// begin runs the side a few times to choose the number of runs per round.
func (s *tuned) begin(ctx context.Context) error {
	s.count, s.least = 1, maxTime
	for range 3 {
		if err := s.round(ctx); err != nil {
			return err
		}
	}
	s.count = int(min(max(tuningRound/s.least, 1), maxRuns))
	return nil
}

func (s *tuned) round(ctx context.Context) error {
	begun := time.Now()
	for range s.count {
		if err := s.unit.Execute(ctx, s.args); err != nil {
			return err
		}
	}
	s.least = max(min(s.least, time.Since(begun)/time.Duration(s.count)), 1)
	return nil
}

// tuningTensors allocates arguments of the declared sizes.
func tuningTensors(g *lowering.Graph, list []int) (args []*tensor.Value) {
	for _, v := range list {
		x := &g.Values[v]
		t := tensor.Make(x.DType, x.Sizes, x.DimOrder, x.Dynamism)
		t.Bind(tensor.AlignedBytes(int(x.NBytes())))
		value := tensor.TensorValue(t)
		args = append(args, &value)
	}
	return args
}

// tuningInputs returns pseudorandom inputs from a fixed seed; floats are between -1 and 1.
func tuningInputs(g *lowering.Graph) []*tensor.Value {
	args := tuningTensors(g, g.Inputs)
	r := rand.New(rand.NewPCG(1, 2))
	for _, a := range args {
		switch t := a.Tensor; t.DType {
		case tensor.Float32:
			for i := range tensor.Data[float32](t) {
				tensor.Data[float32](t)[i] = 2*r.Float32() - 1
			}
		case tensor.Int8, tensor.Uint8:
			for i := range t.Data {
				t.Data[i] = byte(r.Uint32())
			}
		}
	}
	return args
}
