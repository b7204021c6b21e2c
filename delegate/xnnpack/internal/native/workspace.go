package native

import (
	"io"
	"runtime"
	"sync"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// workspace is the memory of values between nodes. Runtimes that never run at the same time share
// one: the library grows it to the size that the largest runtime needs, and then updates the
// pointers of the others.
type workspace struct {
	lib *xnn.Library

	mu     sync.Mutex // held while runtimes in it are created, planned or deleted
	handle xnn.Workspace
	Uses   int
	// Broken is set after a plan failed midway: other runtimes may point to freed memory, and must
	// not run any more.
	Broken bool
}

// newWorkspace returns a workspace with one user.
func newWorkspace(lib *xnn.Library) (*workspace, error) {
	w := &workspace{lib: lib, Uses: 1}
	if err := lib.CreateWorkspace(&w.handle).Error("xnn_create_workspace"); err != nil {
		return nil, deviceError(err)
	}
	return w, nil
}

// workspaceIn returns the workspace of a scratch, with one more user, or a new one if s is nil or
// its workspace can no longer be used.
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

// share is the use of a workspace by a scratch, until it is closed or garbage collected.
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

// Close implements io.Closer.
func (s *share) Close() error {
	s.once.Do(s.workspace.release)
	return nil
}

// retain adds a user. It reports false if the workspace can no longer be used.
func (w *workspace) retain() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Uses == 0 || w.Broken {
		return false
	}
	w.Uses++
	return true
}

// release removes a user. It frees the memory with the last one. It does nothing on a nil w.
func (w *workspace) release() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Uses--; w.Uses == 0 {
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

// create makes a library call that creates a runtime in the workspace.
func (w *workspace) create(call func() xnn.Status) xnn.Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return call()
}

// plan makes a library call that may grow the workspace.
func (w *workspace) plan(name string, call func() xnn.Status) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := call().Error(name)
	w.Broken = w.Broken || err != nil
	return err
}

// deviceError wraps an error of the library. It returns nil for nil.
func deviceError(err error) error {
	if err == nil {
		return nil
	}
	return &delegate.Error{Backend: graph.ID, Reason: delegate.ErrDevice, Err: err}
}
