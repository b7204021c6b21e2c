package xnnpack

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/hal/cpu"
)

// A weights file keeps the packed weights of a payload, for processes to map and share.
// Its name is a digest of all that they depend on: the constants (by their tags, see
// folderMark) and the graph, the library's sources, and the processor. Little-endian:
//
//	magic, u32 CRC-32C of the rest, u32 number of entries
//	entries: u32 seed, i32 kernel, i32 bias (values of the graph, -1 for none), u32 0,
//	         u64 offset from the file's start, u64 size
//	blocks at multiples of 64, and room that vectors may read past the last one
const (
	weightsMagic  = "ETRUNXW1"
	weightsHeader = 16
	weightsEntry  = 32
	weightsAlign  = 64
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// weightsFile is where the weights of an image are, in the folder of the option.
func (m *image) weightsFile(folder string) (string, error) {
	mark, err := folderMark(folder)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintln(h, runtime.GOARCH, m.lib.Soname.Name)
	h.Write(m.lib.BuildIdentifier())
	writeProcessor(h)
	for v := range m.graph.Values {
		x := &m.graph.Values[v]
		fmt.Fprintln(h, v, x.Datatype, x.Shape, x.Quant, len(x.Data))
		h.Write(mark(v, x.Data))
	}
	for i := range m.graph.Nodes {
		n := &m.graph.Nodes[i]
		fmt.Fprintln(h, n.Type.tag, n.In, n.Out, n.Flags, n.Window)
	}
	return filepath.Join(folder, fmt.Sprintf("%x.xnnweights", h.Sum(nil))), nil
}

// folderKey is the file of a folder's secret.
const folderKey = ".key"

// folderMark gives the authentication tags (GMAC) of constants under a secret of the
// folder's own, which is made with the folder. Many times faster than a digest, they
// tell constants apart as well as one, as long as who makes a program cannot read the
// secret: nobody else can give a program's weights to another one.
func folderMark(folder string) (mark func(value int, data []byte) []byte, err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	path := filepath.Join(folder, folderKey)
	key, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		if err := writeKey(folder, path); err != nil {
			return nil, err
		}
		key, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	var nonce [12]byte
	return func(value int, data []byte) []byte {
		binary.LittleEndian.PutUint64(nonce[:], uint64(value))
		return gcm.Seal(nil, nonce[:], nil, data)
	}, nil
}

// writeKey makes a folder's secret, unless another process comes first.
func writeKey(folder, path string) error {
	temp, err := os.CreateTemp(folder, ".key-*") // readable by its owner only
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	key := make([]byte, 32)
	rand.Read(key)
	_, err = temp.Write(key)
	if closed := temp.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if err := os.Link(temp.Name(), path); !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// writeProcessor writes what the library chooses its kernels by.
func writeProcessor(h hash.Hash) {
	fmt.Fprintln(h, cpu.Features())
	info, _ := os.ReadFile("/proc/cpuinfo")
	for _, line := range strings.Split(string(info), "\n") {
		name, _, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(name) {
		case "model name", "flags", "Features", "CPU implementer", "CPU part", "CPU variant":
			fmt.Fprintln(h, line)
		}
	}
}

// openFile maps a file of packed weights, if it is there and whole.
func (w *weights) openFile(path string, g *Graph) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() < weightsHeader || info.Size() > 8<<30 {
		return fmt.Errorf("%s: %d bytes", path, info.Size())
	}
	mapping, err := cpu.MapFile(f, info.Size())
	if err != nil {
		return err
	}
	entries, err := parseWeights(mapping.Bytes(), g)
	if err != nil {
		mapping.Close()
		return fmt.Errorf("%s: %w", path, err)
	}
	w.mapping, w.entries = mapping, entries
	return nil
}

var errWeights = errors.New("damaged")

// parseWeights checks a file of packed weights and finds its entries.
func parseWeights(data []byte, g *Graph) ([]entry, error) {
	le := binary.LittleEndian
	if string(data[:8]) != weightsMagic || le.Uint32(data[8:]) != crc32.Checksum(data[12:], castagnoli) {
		return nil, errWeights
	}
	n := uint64(le.Uint32(data[12:]))
	if n > uint64(len(data)-weightsHeader)/weightsEntry {
		return nil, errWeights
	}
	entries := make([]entry, n)
	for i := range entries {
		e := data[weightsHeader+i*weightsEntry:]
		kernel, ok1 := constantAddress(g, int32(le.Uint32(e[4:])))
		bias, ok2 := constantAddress(g, int32(le.Uint32(e[8:])))
		offset, size := le.Uint64(e[16:]), le.Uint64(e[24:])
		if !ok1 || !ok2 || offset%weightsAlign != 0 || size == 0 || offset > uint64(len(data)) || size+weightsAlign > uint64(len(data))-offset {
			return nil, errWeights
		}
		block := data[offset : offset+size : offset+size]
		entries[i] = entry{xnn.WeightsKey{Seed: le.Uint32(e), Kernel: kernel, Bias: bias}, xnn.AddressOf(block), block}
	}
	return entries, nil
}

func constantAddress(g *Graph, v int32) (xnn.Address, bool) {
	if v == none {
		return 0, true
	}
	if v < 0 || int(v) >= len(g.Values) || !g.Values[v].isConst() {
		return 0, false
	}
	return xnn.AddressOf(g.Values[v].Data), true
}

// writeFile stores the packed weights; the file appears whole or not at all.
func (w *weights) writeFile(path string, g *Graph) error {
	data, err := w.encode(g)
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".xnnweights-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(data)
	if closed := temp.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Chmod(temp.Name(), 0o644)
	}
	if err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

func (w *weights) encode(g *Graph) ([]byte, error) {
	values := map[xnn.Address]int32{0: none}
	for v := range g.Values {
		if x := &g.Values[v]; x.isConst() {
			values[xnn.AddressOf(x.Data)] = int32(v)
		}
	}
	le := binary.LittleEndian
	out := append([]byte(weightsMagic), make([]byte, weightsHeader-len(weightsMagic)+weightsEntry*len(w.entries))...)
	le.PutUint32(out[12:], uint32(len(w.entries)))
	places := make(map[xnn.Address]int)
	for i, e := range w.entries {
		kernel, ok1 := values[e.key.Kernel]
		bias, ok2 := values[e.key.Bias]
		if !ok1 || !ok2 {
			return nil, errors.New("weights that are not made of constants")
		}
		at, ok := places[e.at]
		if !ok {
			out = append(out, make([]byte, -len(out)&(weightsAlign-1))...)
			at = len(out)
			places[e.at] = at
			out = append(out, e.data...)
		}
		head := out[weightsHeader+i*weightsEntry:]
		le.PutUint32(head, e.key.Seed)
		le.PutUint32(head[4:], uint32(kernel))
		le.PutUint32(head[8:], uint32(bias))
		le.PutUint64(head[16:], uint64(at))
		le.PutUint64(head[24:], uint64(len(e.data)))
	}
	out = append(out, make([]byte, 2*weightsAlign)...)
	sealWeights(out)
	return out, nil
}

// sealWeights puts the checksum into a file's header.
func sealWeights(file []byte) {
	binary.LittleEndian.PutUint32(file[8:], crc32.Checksum(file[12:], castagnoli))
}

// useFile takes the weights from a file or, once they are packed, leaves them there.
// What became of it is for people.
func (m *image) useFile(folder string, pack func() error) error {
	if folder == "" {
		return pack()
	}
	path, err := m.weightsFile(folder)
	if err != nil {
		m.cacheNote = notKept + err.Error()
		return pack()
	}
	if err = m.weights.openFile(path, m.graph); err == nil {
		m.cacheNote = "from " + path
		return pack()
	}
	if packed := pack(); packed != nil {
		return packed
	}
	if err = m.weights.writeFile(path, m.graph); err != nil {
		m.cacheNote = notKept + err.Error()
	} else {
		m.cacheNote = "kept in " + path
	}
	return nil
}

// agrees reports packed bytes that are what the entry says.
func (e *entry) agrees(packed []byte) bool { return bytes.Equal(e.data, packed) }
