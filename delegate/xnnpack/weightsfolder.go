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

// Weights that the library reads are trusted, so their folder must be: see cachefolder.
// othersUse are the permissions that others must not have on its key.
const othersUse = 0o077

// folderKey is the file of a folder's secret, and keyBytes its size.
const (
	folderKey = ".key"
	keyBytes  = 32
)

// markFunc gives the authentication tag of a value's constant.
type markFunc func(value int, data []byte) []byte

// openFolder opens a folder of weights, and makes it where there is none.
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

// folderMark gives the authentication tags (GMAC) of constants under a secret of the
// folder's own, which is made with the folder. Many times faster than a digest, they
// tell constants apart as well as one, as long as who makes a program cannot read the
// secret: nobody else can give a program's weights to another one.
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

// readKey reads a folder's secret, which nobody else may know or have chosen.
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

// writeKey makes a folder's secret, unless another process comes first.
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

// writeFile stores the packed weights; the file appears whole or not at all.
func (w *weights) writeFile(folder *os.Root, name string, g *graph) error {
	data, err := w.encode(g)
	if err != nil {
		return err
	}
	return cachefolder.Replace(folder, name, data)
}

// mostPacked bounds the size of a file of packed weights by the graph's constants: their
// channels are padded to the largest tiles, their elements and what belongs to a channel
// take the most bytes.
func (g *graph) mostPacked() int64 {
	most := int64(weightsHeader + 2*weightsAlign)
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Type.packs && g.Values[n.In[1]].isConst() {
			most = plus(most, plus(n.mostPacked(g.Values[n.In[1]].Shape), weightsEntry+2*weightsAlign))
		}
	}
	return most
}

func (n *node) mostPacked(s shape) int64 {
	const element, channel, kernels = 4, 32, 4 // bytes; and kernels that one node may be packed for
	if w := n.window(); n.Type.convolution {
		out := times(w.groups, roundUp(w.groupOut, tileOut))
		return times(kernels, int(times(int(out), w.kernelH*w.kernelW, roundUp(w.groupIn, tileOut), element)+
			times(int(out), channel, 1+w.strideH*w.strideW)))
	}
	rows, columns := roundUp(s.fromEnd(1), tileOut), roundUp(s.fromEnd(0), tileOut)
	return times(kernels, s.leading(s.rank-2), rows*columns*element+channel*max(rows, columns))
}
