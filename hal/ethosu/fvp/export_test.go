package fvp

import (
	"context"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// Answered starts a machine without an NPU: answer does its work, with the files of a
// folder.
func Answered(ctx context.Context, path string, image []byte, c isa.Config, arguments func(folder, image string) []string,
	answer func(folder string) error) (*Model, error) {
	m, err := launch(ctx, path, image, c, arguments)
	if err == nil {
		m.answer = answer
	}
	return m, err
}
