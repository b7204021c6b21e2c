package cachefolder

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

	"github.com/etrun-go/etrun/internal/openfile"
)

// othersUse are the permissions that other users must not have on a folder's key.
const othersUse = 0o077

// keyName is the name of the file with a folder's secret, and keyBytes its size.
const (
	keyName  = ".key"
	keyBytes = 32
)

// Mark returns the authentication tag of a constant, the index-th of several.
type Mark func(index int, data []byte) []byte

// OpenMarked opens a folder with a secret, and creates both if they do not exist.
func OpenMarked(ctx context.Context, path string) (*os.Root, Mark, error) {
	folder, err := open(path)
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
func folderMark(ctx context.Context, folder *os.Root) (Mark, error) {
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
	return func(index int, data []byte) []byte {
		binary.LittleEndian.PutUint64(nonce[:], uint64(index))
		return gcm.Seal(nil, nonce[:], nil, data)
	}, nil
}

// readKey reads a folder's secret, which other users must not be able to read or choose.
func readKey(ctx context.Context, folder *os.Root) ([]byte, error) {
	f, err := openfile.OpenIn(ctx, folder, keyName, openfile.Rules{Limit: keyBytes})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := openfile.CheckOwner(f.Info(), othersUse); err != nil {
		return nil, err
	}
	key, err := f.ReadAll(func(n int) []byte { return make([]byte, n) })
	if err == nil && len(key) != keyBytes {
		err = fmt.Errorf("%s: %d bytes, want %d", keyName, len(key), keyBytes)
	}
	return key, err
}

// writeKey creates a folder's secret, unless another process has created it first.
func writeKey(folder *os.Root) error {
	key := make([]byte, keyBytes)
	rand.Read(key)
	return write(folder, 0o600, [][]byte{key}, func(hidden string) error {
		if err := folder.Link(hidden, keyName); !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	})
}
