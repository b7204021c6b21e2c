package xnnpack

import (
	"io"
	"runtime"
	"sync"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
)

// workspace is the memory of values between nodes. Runtimes that never run at the same
// time share one: the library lets it grow to what the largest takes, and then moves what
// the others point to.
type workspace struct {
	lib *xnn.Library

	mu     sync.Mutex // held while runtimes in it are made, planned or deleted
	handle xnn.Workspace
	uses   int
	// broken says that a plan failed half way: other runtimes may point to memory that
	// is gone, and must not run any more.
	broken bool
}

// newWorkspace has one use.
func newWorkspace(lib *xnn.Library) (*workspace, error) {
	w := &workspace{lib: lib, uses: 1}
	if err := lib.CreateWorkspace(&w.handle).Error("xnn_create_workspace"); err != nil {
		return nil, deviceError(err)
	}
	return w, nil
}

// workspaceIn is the workspace of a scratch, or a new one where there is no scratch, with
// a further use.
func workspaceIn(s *delegate.Scratch, lib *xnn.Library) (*workspace, error) {
	if s == nil {
		return newWorkspace(lib)
	}
	part, err := s.Part(lib, func() (io.Closer, error) { return newShare(lib) })
	if err != nil {
		return nil, err
	}
	w := part.(*share).workspace
	if !w.retain() {
		return newWorkspace(lib)
	}
	return w, nil
}

// share is the use that a scratch has of a workspace, until it is closed or forgotten.
type share struct {
	workspace *workspace
	once      *sync.Once
}

func newShare(lib *xnn.Library) (*share, error) {
	w, err := newWorkspace(lib)
	if err != nil {
		return nil, err
	}
	s := &share{w, new(sync.Once)}
	once := s.once
	runtime.AddCleanup(s, func(w *workspace) { once.Do(w.release) }, w)
	return s, nil
}

func (s *share) Close() error {
	s.once.Do(s.workspace.release)
	return nil
}

// retain adds a use, unless nobody may use the workspace any more.
func (w *workspace) retain() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.uses == 0 || w.broken {
		return false
	}
	w.uses++
	return true
}

// release ends a use, and with the last one the memory. A nil w has none.
func (w *workspace) release() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.uses--; w.uses == 0 {
		w.lib.ReleaseWorkspace(w.handle)
	}
}

// delete deletes a runtime in the workspace.
func (w *workspace) delete(rt xnn.Runtime) {
	if rt == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lib.DeleteRuntime(rt)
}

// plan makes a call of the library that may let the workspace grow.
func (w *workspace) plan(name string, call func() xnn.Status) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := call().Error(name)
	w.broken = w.broken || err != nil
	return err
}
