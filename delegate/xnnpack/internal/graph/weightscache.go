package graph

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/cachefolder"
	"github.com/etrun-go/etrun/internal/openfile"
)

// WeightsCache is the folder in which engines store packed weights for later processes. The engines trust the weights
// that they read, so the folder must be trusted: see [cachefolder].
type WeightsCache struct {
	Folder string // empty for none
	Map    bool   // map files, sharing their memory with other processes; they must not change
}

// WeightsFile is how an engine reads and writes the packed weights of a graph. The name of the file is a digest of all that they
// depend on: the graph, its constants, by authentication tags, and what DependsOn writes.
type WeightsFile struct {
	Suffix    string // of the name
	DependsOn func(h io.Writer)
	Open      func(folder *os.Root, name string) error // reads the file; fs.ErrNotExist if there is none
	Pack      func() error                             // packs, after Open only what is not in the file
	Write     func(folder *os.Root, name string) error // writes what was packed
}

// NotKept starts the note of weights that are not in a file.
const NotKept = "not kept: "

// Use reads the weights of a graph from their file. If that is not possible, it packs them and writes the file. The note is where
// the weights are, or why they are in no file, empty without a folder.
func (c WeightsCache) Use(ctx context.Context, g *Graph, f WeightsFile) (note string, err error) {
	if c.Folder == "" {
		return "", f.Pack()
	}
	note, err = c.use(ctx, g, f)
	if ctx.Err() != nil && err != nil {
		return "", context.Cause(ctx)
	}
	if unused, ok := errors.AsType[*unusedFolder](err); ok {
		return NotKept + unused.Error(), f.Pack()
	}
	return note, err
}

// unusedFolder is the reason why a folder of weights is not used.
type unusedFolder struct{ error }

func (c WeightsCache) use(ctx context.Context, g *Graph, f WeightsFile) (note string, err error) {
	folder, mark, err := cachefolder.OpenMarked(ctx, c.Folder)
	if err != nil {
		return "", &unusedFolder{err}
	}
	defer folder.Close()
	name, err := g.weightsName(ctx, mark, f)
	if err != nil {
		return "", err
	}
	path := filepath.Join(c.Folder, name)
	found := f.Open(folder, name)
	if found == nil {
		return "from " + path, f.Pack()
	}
	if err := f.Pack(); err != nil {
		return "", err
	}
	note = "kept in " + path
	if !errors.Is(found, fs.ErrNotExist) {
		note += ", the file that was there was not used: " + found.Error()
	}
	if err := f.Write(folder, name); err != nil {
		note = NotKept + err.Error()
	}
	return note, nil
}

// weightsName returns the name of the file with the graph's packed weights.
func (g *Graph) weightsName(ctx context.Context, mark cachefolder.Mark, f WeightsFile) (string, error) {
	h := sha256.New()
	f.DependsOn(h)
	for v := range g.Values {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		x := &g.Values[v]
		q := &x.Quant
		fmt.Fprintln(h, v, x.Datatype, x.Shape, len(x.Data), q.Scale, q.ZeroPoint, q.ChannelDim, q.GroupSize, q.Nonbatch,
			len(q.Scales), len(q.Blocks))
		for _, list := range []any{q.Scales, q.Blocks} { // long lists are hashed in binary form
			_ = binary.Write(h, binary.LittleEndian, list) // writing to a digest does not fail
		}
		h.Write(mark(v, x.Data))
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		fmt.Fprintln(h, n.Type.Tag, n.In, n.Out, n.Flags, n.Geometry())
	}
	return fmt.Sprintf("%x%s", h.Sum(nil), f.Suffix), nil
}

// MapWeights maps the pages of a file, if mapped is set, or reads it into new pages, so that later changes of the file have no
// effect.
func MapWeights(ctx context.Context, folder *os.Root, name string, r openfile.Rules, mapped bool) (*cpu.Mapping, error) {
	f, err := openfile.OpenIn(ctx, folder, name, r)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := openfile.CheckOwner(f.Info(), cachefolder.OthersWrite); err != nil {
		return nil, err
	}
	size, _ := f.Size()
	if mapped {
		return cpu.MapFile(f.OS(), size)
	}
	return cpu.FillMapping(size, func(b []byte) error {
		_, err := f.ReadAll(func(int) []byte { return b })
		return err
	})
}

// Checksum returns the CRC-32C of parts, one after the other. Its table is not a variable: most processes need none, and it takes a
// quarter of a millisecond.
func Checksum(parts ...[]byte) (sum uint32) {
	table := crc32.MakeTable(crc32.Castagnoli)
	for _, part := range parts {
		sum = crc32.Update(sum, table, part)
	}
	return sum
}
