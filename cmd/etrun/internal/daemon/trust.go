package daemon

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"aead.dev/minisign"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/internal/openfile"
)

// modelFiles are the files that a load of a model has used: each that determines its answers. Their
// bytes are checked in memory. If signatures are required files are not mapped: nothing can replace the bytes any more.
type modelFiles struct {
	trust string            // the public key or its file; empty if no signature is required
	known map[string]string // digests that were checked by another process, by path; nil for none

	mu      sync.Mutex
	paths   []string // in the order of use
	digests map[string]string
}

// verifies reports whether files must have signatures, here or in the process that has verified them.
func (f *modelFiles) verifies() bool { return f.trust != "" || f.known != nil }

// check records the digest of a file, and verifies its signature if one is required.
func (f *modelFiles) check(ctx context.Context, path string, data []byte) error {
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	if want, ok := f.known[path]; f.known != nil && (!ok || want != digest) {
		return fmt.Errorf("%s: the file changed after its signature was verified: %w", path, etrun.ErrFormat)
	}
	if err := verifySignature(ctx, f.trust, path, bytes.NewReader(data)); err != nil {
		return err
	}
	f.note(path, digest)
	return nil
}

func (f *modelFiles) note(path, digest string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.digests == nil {
		f.digests = make(map[string]string)
	}
	if _, again := f.digests[path]; !again {
		f.paths = append(f.paths, path)
	}
	f.digests[path] = digest
}

// digest returns the digest of the only file, or that of the digests of all files, one per line.
func (f *modelFiles) digest() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.paths) == 1 {
		return f.digests[f.paths[0]]
	}
	sum := sha256.New()
	for _, path := range f.paths {
		fmt.Fprintln(sum, f.digests[path])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// checkOpen is check for an open file that another process will read. It returns the digest.
func (f *modelFiles) checkOpen(ctx context.Context, path string, file *os.File) (string, error) {
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	if err := verifySignature(ctx, f.trust, path, io.TeeReader(io.NewSectionReader(file, 0, info.Size()), sum)); err != nil {
		return "", err
	}
	digest := hex.EncodeToString(sum.Sum(nil))
	f.note(path, digest)
	return digest, nil
}

// maxSignature bounds a signature file, maxKey a key file.
const (
	maxSignature = 4 << 10
	maxKey       = 4 << 10
)

// verifySignature verifies the detached signature of what from has, and reads all of it. An empty
// trust requires none.
func verifySignature(ctx context.Context, trust, path string, from io.Reader) error {
	if trust == "" {
		return nil
	}
	key, err := publicKey(ctx, trust)
	if err != nil {
		return err
	}
	signature, err := openfile.ReadFile(ctx, path+".minisig", openfile.Rules{Limit: maxSignature})
	if err != nil {
		return fmt.Errorf("%s: --trust requires a signature: %w", path, err)
	}
	ok, err := signed(key, from, signature)
	if err == nil && !ok {
		err = fmt.Errorf("%s: not a signature of the key %016X: %w", path, key.ID(), etrun.ErrFormat)
	}
	return err
}

// signed verifies a signature of the BLAKE2b digest, or, in the legacy format, of the bytes, which
// are then read into memory.
func signed(key minisign.PublicKey, from io.Reader, signature []byte) (ok bool, err error) {
	var form minisign.Signature
	if err := form.UnmarshalText(signature); err != nil {
		return false, nil
	}
	if form.Algorithm == minisign.EdDSA {
		b, err := io.ReadAll(from)
		return err == nil && minisign.Verify(key, b, signature), err
	}
	read := minisign.NewReader(from)
	_, err = io.Copy(io.Discard, read)
	return err == nil && read.Verify(key, signature), err
}

// publicKey parses a key, or reads it from a file.
func publicKey(ctx context.Context, text string) (key minisign.PublicKey, err error) {
	if err := key.UnmarshalText([]byte(text)); err == nil {
		return key, nil
	}
	if _, err := os.Stat(text); err != nil {
		return key, session.Usage("--trust %.80q is neither a minisign public key nor a file", text)
	}
	b, err := openfile.ReadFile(openfile.Within(ctx, ""), text, openfile.Rules{Limit: maxKey}) // the key of the server's owner
	if err != nil {
		return key, err
	}
	if err := key.UnmarshalText([]byte(strings.TrimSpace(string(b)))); err != nil {
		return key, session.Usage("--trust %s: %w", text, err)
	}
	return key, nil
}
