package daemon

import (
	"context"
	"os"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/internal/openfile"
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

// openRegular opens a regular file, which a process reads by its descriptor.
func openRegular(ctx context.Context, path string) (*os.File, error) {
	f, err := openfile.Open(context.WithoutCancel(ctx), path, openfile.Rules{})
	if err != nil {
		return nil, err
	}
	return f.OS(), nil
}
