package ethosu

import "fmt"

// node is an open device node of one of the kernel's drivers.
type node struct {
	k     kernel
	fd    int
	name  string // for errors
	info  Info
	queue *queue
}

// openNode opens the device of a driver at a path, by default the first one that it probes.
func openNode(k kernel, driver, path string, probe func(kernel) Outcome) (node, error) {
	if path == "" {
		paths := probe(k).Paths
		if len(paths) == 0 {
			return node{}, &DeviceError{Device: driver, Op: "open", Reason: ErrMissing}
		}
		path = paths[0]
	}
	n := node{k: k, name: driver + " " + path, info: Info{Driver: driver, Path: path, Hardware: true}, queue: newQueue()}
	fd, err := k.open(path)
	if err != nil {
		return node{}, n.error("open", "open", err)
	}
	n.fd = fd
	return n, nil
}

func (n *node) Info() Info { return n.info }

func (n *node) Close() error {
	if err := n.k.close(n.fd); err != nil {
		return n.error("close", "close", err)
	}
	return nil
}

func (n *node) error(op, what string, err error) error {
	return systemError(n.name, op, what, err)
}

func (n *node) fault(op, format string, args ...any) error {
	return &DeviceError{Device: n.name, Op: op, Reason: ErrFault, Err: fmt.Errorf(format, args...)}
}

func (n *node) unsupported(op, format string, args ...any) error {
	return &DeviceError{Device: n.name, Op: op, Reason: ErrUnsupported, Err: fmt.Errorf(format, args...)}
}
