package native

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

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/cachefolder"
	"github.com/etrun-go/etrun/internal/openfile"
)

// The library trusts the weights that it reads, so their folder must be trusted: see cachefolder.
// othersUse are the permissions that other users must not have on its key.
const othersUse = 0o077

// FolderKey is the name of the file with a folder's secret, and keyBytes its size.
const (
	FolderKey = ".key"
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
	f, err := openfile.OpenIn(ctx, folder, FolderKey, openfile.Rules{Limit: keyBytes})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := openfile.CheckOwner(f.Info(), othersUse); err != nil {
		return nil, err
	}
	key, err := f.ReadAll(func(n int) []byte { return make([]byte, n) })
	if err == nil && len(key) != keyBytes {
		err = fmt.Errorf("%s: %d bytes, want %d", FolderKey, len(key), keyBytes)
	}
	return key, err
}

// writeKey creates a folder's secret, unless another process has created it first.
func writeKey(folder *os.Root) error {
	key := make([]byte, keyBytes)
	rand.Read(key)
	return cachefolder.Write(folder, 0o600, key, func(hidden string) error {
		if err := folder.Link(hidden, FolderKey); !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	})
}

// writeFile stores the packed weights. The file appears complete or not at all.
func (w *weights) writeFile(folder *os.Root, name string, g *graph.Graph) error {
	data, err := w.encode(g)
	if err != nil {
		return err
	}
	return cachefolder.Replace(folder, name, data)
}

// MaxPacked returns an upper bound for the size of a file of packed weights, computed from the
// graph's constants: channels are padded to the largest tiles, and each element and channel needs
// the largest number of bytes.
func MaxPacked(g *graph.Graph) int64 {
	most := int64(WeightsHeader + 2*weightsAlign)
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Type.Packs && g.Values[n.In[1]].IsConst() {
			most = graph.Plus(most, graph.Plus(maxPackedBytes(n, g.Values[n.In[1]].Shape), weightsEntry+2*weightsAlign))
		}
	}
	return most
}

func maxPackedBytes(n *graph.Node, s graph.Shape) int64 {
	const element, channel, kernels = 4, 32, 4 // in bytes; kernels for which one node may be packed
	if w := n.Window(); n.Type.Convolution {
		out := graph.Times(w.Groups, graph.RoundUp(w.GroupOut, tileOut))
		return graph.Times(kernels, int(graph.Times(int(out), w.KernelH*w.KernelW, graph.RoundUp(w.GroupIn, tileOut), element)+
			graph.Times(int(out), channel, 1+w.StrideH*w.StrideW)))
	}
	rows, columns := graph.RoundUp(s.FromEnd(1), tileOut), graph.RoundUp(s.FromEnd(0), tileOut)
	return graph.Times(kernels, s.Leading(s.Rank-2), rows*columns*element+channel*max(rows, columns))
}
