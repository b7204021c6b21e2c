package xnnpack

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/etrun-go/etrun/internal/cachefolder"
	"github.com/etrun-go/etrun/internal/openfile"
)

// The library trusts the weights that it reads, so their folder must be trusted: see cachefolder.
// othersUse are the permissions that other users must not have on its key.
const othersUse = 0o077

// folderKey is the name of the file with a folder's secret, and keyBytes its size.
const (
	folderKey = ".key"
	keyBytes  = 32
)

// markFunc returns the authentication tag of the constant of a value.
type markFunc func(value int, data []byte) []byte

// openFolder opens a folder of weights, and creates it if it does not exist.
func openFolder(ctx context.Context, path string) (*os.Root, markFunc, error) {
	folder, err := cachefolder.Open(path)
	if err != nil {
		return nil, nil, err
	}
	mark, err := folderMark(ctx, folder)
	if err != nil {
		folder.Close()
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return folder, mark, nil
}

// folderMark returns a function that computes authentication tags (GMAC) of constants under the
// secret of the folder, which is created with the folder. They are many times faster than a digest,
// and distinguish constants as well, as long as the author of a program cannot read the secret.
// Without it, one program cannot be made to use weights of another.
func folderMark(ctx context.Context, folder *os.Root) (markFunc, error) {
	key, err := readKey(ctx, folder)
	if errors.Is(err, fs.ErrNotExist) {
		if err := writeKey(folder); err != nil {
			return nil, err
		}
		key, err = readKey(ctx, folder)
	}
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
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

// readKey reads a folder's secret, which other users must not be able to read or choose.
func readKey(ctx context.Context, folder *os.Root) ([]byte, error) {
	f, err := openfile.OpenIn(ctx, folder, folderKey, openfile.Rules{Limit: keyBytes})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := openfile.CheckOwner(f.Info(), othersUse); err != nil {
		return nil, err
	}
	key, err := f.ReadAll(func(n int) []byte { return make([]byte, n) })
	if err == nil && len(key) != keyBytes {
		err = fmt.Errorf("%s: %d bytes, want %d", folderKey, len(key), keyBytes)
	}
	return key, err
}

// writeKey creates a folder's secret, unless another process has created it first.
func writeKey(folder *os.Root) error {
	key := make([]byte, keyBytes)
	rand.Read(key)
	return cachefolder.Write(folder, 0o600, key, func(hidden string) error {
		if err := folder.Link(hidden, folderKey); !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	})
}

// writeFile stores the packed weights. The file appears complete or not at all.
func (w *weights) writeFile(folder *os.Root, name string, g *graph) error {
	data, err := w.encode(g)
	if err != nil {
		return err
	}
	return cachefolder.Replace(folder, name, data)
}

// maxPacked returns an upper bound for the size of a file of packed weights, computed from the
// graph's constants: channels are padded to the largest tiles, and each element and channel needs
// the largest number of bytes.
func maxPacked(g *graph) int64 {
	most := int64(weightsHeader + 2*weightsAlign)
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Type.packs && g.Values[n.In[1]].isConst() {
			most = plus(most, plus(maxPackedBytes(n, g.Values[n.In[1]].Shape), weightsEntry+2*weightsAlign))
		}
	}
	return most
}

func maxPackedBytes(n *node, s shape) int64 {
	const element, channel, kernels = 4, 32, 4 // in bytes; kernels for which one node may be packed
	if w := n.window(); n.Type.convolution {
		out := times(w.groups, roundUp(w.groupOut, tileOut))
		return times(kernels, int(times(int(out), w.kernelH*w.kernelW, roundUp(w.groupIn, tileOut), element)+
			times(int(out), channel, 1+w.strideH*w.strideW)))
	}
	rows, columns := roundUp(s.fromEnd(1), tileOut), roundUp(s.fromEnd(0), tileOut)
	return times(kernels, s.leading(s.rank-2), rows*columns*element+channel*max(rows, columns))
}
