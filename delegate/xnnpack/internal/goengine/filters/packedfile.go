package filters

import (
	"context"
	"encoding/binary"
	"errors"
	"os"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/cachefolder"
	"github.com/etrun-go/etrun/internal/openfile"
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

var errPacked = errors.New("damaged")

// Open reads the panels from a file, or maps it.
func (w *Packing) Open(ctx context.Context, folder *os.Root, name string, mapped bool) error {
	size := packedHeader + w.Size
	pages, err := graph.MapWeights(ctx, folder, name, openfile.Rules{Limit: size, Start: len(packedMagic), Check: checkPackedMagic}, mapped)
	if err != nil {
		return err
	}
	data, le := pages.Bytes(), binary.LittleEndian
	if int64(len(data)) != size || int64(le.Uint64(data[16:])) != w.Size || le.Uint32(data[8:]) != graph.Checksum(data[12:]) {
		pages.Close()
		return errPacked
	}
	w.to.Memory, w.memory, w.stored = ownedBy(pages), data[packedHeader:], true
	return nil
}

func checkPackedMagic(start []byte) error {
	if string(start) != packedMagic {
		return errPacked
	}
	return nil
}

// Write stores the panels. The file appears complete or not at all.
func (w *Packing) Write(folder *os.Root, name string) error {
	head := make([]byte, packedHeader)
	copy(head, packedMagic)
	binary.LittleEndian.PutUint64(head[16:], uint64(w.Size))
	binary.LittleEndian.PutUint32(head[8:], graph.Checksum(head[12:], w.memory))
	return cachefolder.Replace(folder, name, head, w.memory)
}
