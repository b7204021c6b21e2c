package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"

	"aead.dev/minisign"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/internal/openfile"
)

// program is an open file and the digest of its bytes.
type program struct {
	*etrun.Program
	digest string
}

// open opens a model's file.
func (m *Model) open(ctx context.Context, options ...etrun.Option) (*program, error) {
	trusted, err := m.verifySignature(ctx)
	if err != nil {
		return nil, err
	}
	if m.Mmap() {
		return m.openMapped(ctx, trusted, options)
	}
	f, err := openfile.Open(ctx, m.Path, openfile.Rules{})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, _ := f.Size()
	read := &hashed{from: f, sum: sha256.New()}
	p, err := m.OpenProgram(ctx, m.Path, etrun.ReaderAt(m.Path, read, size), options...)
	if err != nil {
		return nil, err
	}
	digest := hex.EncodeToString(read.sum.Sum(nil))
	if trusted != "" && digest != trusted {
		_ = p.Close()
		return nil, fmt.Errorf("%s: the file changed after its signature was verified", m.Path)
	}
	return &program{p, digest}, nil
}

// openMapped opens a file that does not change while it is mapped.
func (m *Model) openMapped(ctx context.Context, digest string, options []etrun.Option) (*program, error) {
	if digest == "" {
		f, err := openfile.Open(ctx, m.Path, openfile.Rules{})
		if err != nil {
			return nil, err
		}
		defer f.Close()
		sum := sha256.New()
		if _, err := io.Copy(sum, f); err != nil {
			return nil, err
		}
		digest = hex.EncodeToString(sum.Sum(nil))
	}
	p, err := m.OpenProgram(ctx, m.Path, etrun.File(m.Path), options...)
	if err != nil {
		return nil, err
	}
	return &program{p, digest}, nil
}

// hashed is a file that is read once, in order, and the digest of the bytes read.
type hashed struct {
	from io.Reader
	sum  hash.Hash
	next int64
}

// ReadAt reads the bytes after those read last.
func (h *hashed) ReadAt(p []byte, at int64) (int, error) {
	if at != h.next {
		return 0, fmt.Errorf("read at %d, want %d", at, h.next)
	}
	n, err := io.ReadFull(h.from, p)
	h.next += int64(n)
	h.sum.Write(p[:n])
	return n, err
}

// maxSignature bounds a signature file, maxKey a key file.
const (
	maxSignature = 4 << 10
	maxKey       = 4 << 10
)

// verifySignature verifies the detached signature of the file, and returns the digest of the
// verified bytes, or "" if no signature is required.
func (m *Model) verifySignature(ctx context.Context) (digest string, err error) {
	if m.Trust == "" {
		return "", nil
	}
	key, err := publicKey(ctx, m.Trust)
	if err != nil {
		return "", err
	}
	signature, err := openfile.ReadFile(ctx, m.Path+".minisig", openfile.Rules{Limit: maxSignature})
	if err != nil {
		return "", fmt.Errorf("--trust requires a signature: %w", err)
	}
	digest, ok, err := m.signed(ctx, key, signature)
	if err == nil && !ok {
		err = fmt.Errorf("%s: not a signature of the key %016X: %w", m.Path, key.ID(), etrun.ErrFormat)
	}
	return digest, err
}

// signed verifies a signature of the file's BLAKE2b digest, or, in the legacy format, of its bytes,
// which are then read into memory.
func (m *Model) signed(ctx context.Context, key minisign.PublicKey, signature []byte) (digest string, ok bool, err error) {
	var form minisign.Signature
	if err := form.UnmarshalText(signature); err != nil {
		return "", false, nil
	}
	if form.Algorithm == minisign.EdDSA {
		b, err := openfile.ReadFile(ctx, m.Path, openfile.Rules{})
		sum := sha256.Sum256(b)
		return hex.EncodeToString(sum[:]), err == nil && minisign.Verify(key, b, signature), err
	}
	f, err := openfile.Open(ctx, m.Path, openfile.Rules{})
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	sum := sha256.New()
	read := minisign.NewReader(io.TeeReader(f, sum))
	_, err = io.Copy(io.Discard, read)
	return hex.EncodeToString(sum.Sum(nil)), err == nil && read.Verify(key, signature), err
}

// publicKey parses a key, or reads it from a file.
func publicKey(ctx context.Context, text string) (key minisign.PublicKey, err error) {
	if err := key.UnmarshalText([]byte(text)); err == nil {
		return key, nil
	}
	if _, err := os.Stat(text); err != nil {
		return key, session.Usage("--trust %.80q is neither a minisign public key nor a file", text)
	}
	b, err := openfile.ReadFile(ctx, text, openfile.Rules{Limit: maxKey})
	if err != nil {
		return key, err
	}
	if err := key.UnmarshalText([]byte(strings.TrimSpace(string(b)))); err != nil {
		return key, session.Usage("--trust %s: %w", text, err)
	}
	return key, nil
}
