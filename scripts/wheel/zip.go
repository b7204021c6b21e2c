package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"
)

// pack returns an archive of files, with their checksums in the file named record. The entries are
// sorted, the record is the last one.
func pack(files map[string][]byte, record string, at time.Time) ([]byte, error) {
	var archive, checksums bytes.Buffer
	z := zip.NewWriter(&archive)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		sum := sha256.Sum256(files[name])
		fmt.Fprintf(&checksums, "%s,sha256=%s,%d\n", name, base64.RawURLEncoding.EncodeToString(sum[:]), len(files[name]))
		if err := packFile(z, name, files[name], at); err != nil {
			return nil, err
		}
	}
	fmt.Fprintf(&checksums, "%s,,\n", record)
	if err := packFile(z, record, checksums.Bytes(), at); err != nil {
		return nil, err
	}
	err := z.Close()
	return archive.Bytes(), err
}

var beginOfZip = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

func packFile(z *zip.Writer, name string, data []byte, at time.Time) error {
	if at.Before(beginOfZip) {
		at = beginOfZip
	}
	h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: at}
	h.SetMode(fs.FileMode(0o644))
	w, err := z.CreateHeader(h)
	if err == nil {
		_, err = w.Write(data)
	}
	return err
}
