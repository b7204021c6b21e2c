package goengine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/cachefolder"
	"github.com/etrun-go/etrun/internal/openfile"
	"github.com/etrun-go/etrun/internal/simd"
)

// A packed file stores the memory for panels of a graph, which has the same layout in every process: the sizes follow from the
// graph. All numbers are little-endian:
//
//	magic, u32 CRC-32C of the rest, u32 0, u64 size of the panels, zeros
//	from packedHeader on: the panels
//
// Vectors such as biases and scales are made from the program in every process.
const (
	packedMagic  = "ETRUNGO1"
	packedHeader = 64
)

// packedVersion is increased with every change of what panels contain. packedLeast is the size of panels from which reading a file
// is faster than packing. Tests set them.
var (
	packedVersion       = 6
	packedLeast   int64 = 64 << 10
)

// packedFor writes what panels depend on besides the graph.
func packedFor(h io.Writer) {
	fmt.Fprintln(h, "go engine", packedVersion, runtime.GOARCH, simd.PackedLayout())
}

var errPacked = errors.New("damaged")

// open reads the panels from a file, or maps it.
func (w *packWork) open(ctx context.Context, folder *os.Root, name string, mapped bool) error {
	size := packedHeader + w.size
	pages, err := graph.MapWeights(ctx, folder, name, openfile.Rules{Limit: size, Start: len(packedMagic), Check: checkPackedMagic}, mapped)
	if err != nil {
		return err
	}
	data, le := pages.Bytes(), binary.LittleEndian
	if int64(len(data)) != size || int64(le.Uint64(data[16:])) != w.size || le.Uint32(data[8:]) != graph.Checksum(data[12:]) {
		pages.Close()
		return errPacked
	}
	w.to.memory, w.memory, w.stored = ownedBy(pages), data[packedHeader:], true
	return nil
}

func checkPackedMagic(start []byte) error {
	if string(start) != packedMagic {
		return errPacked
	}
	return nil
}

// write stores the panels. The file appears complete or not at all.
func (w *packWork) write(folder *os.Root, name string) error {
	head := make([]byte, packedHeader)
	copy(head, packedMagic)
	binary.LittleEndian.PutUint64(head[16:], uint64(w.size))
	binary.LittleEndian.PutUint32(head[8:], graph.Checksum(head[12:], w.memory))
	return cachefolder.Replace(folder, name, head, w.memory)
}
