//go:build unix

package browsertest

import (
	"encoding/base64"
	"os"
	"path/filepath"
)

// Shot writes a picture of the window to the folder of the environment variable ETRUN_SCREENSHOTS; without it nothing.
func (b *Browser) Shot(name string) {
	b.t.Helper()
	folder := os.Getenv("ETRUN_SCREENSHOTS")
	if folder == "" {
		return
	}
	var answer struct{ Data string }
	b.Call("Page.captureScreenshot", map[string]any{"format": "png"}, &answer)
	picture, err := base64.StdEncoding.DecodeString(answer.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o600)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
