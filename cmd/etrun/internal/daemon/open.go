package daemon

import (
	"context"

	"github.com/etrun-go/etrun"
)

// open opens a model's program. Its files are checked, and added to files.
func (m *Model) open(ctx context.Context, files *modelFiles, options ...etrun.Option) (*etrun.Program, error) {
	f, err := openRegular(ctx, m.Path) // a program that is read from a pipe cannot be loaded again
	if err != nil {
		return nil, err
	}
	_ = f.Close() // nothing was read
	with := m.Options
	with.Check = files.check
	if files.verifies() {
		with.ReadFiles()
	}
	return with.OpenProgram(ctx, m.Path, etrun.File(m.Path), options...)
}
