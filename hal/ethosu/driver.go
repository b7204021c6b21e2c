package ethosu

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// Driver gives access to one kind of devices.
type Driver struct {
	Name string // name for users: "npu", "fvp", "drm", …
	Doc  string // one-line description
	// Auto includes the driver in the choice of "auto".
	Auto bool
	// Probe looks for devices without opening them.
	Probe func() Outcome
	// Open opens the device at path: one that Probe returned, one that the user named, or "" for
	// the first one found.
	Open func(path string) (Device, error)
	// Claims, if not nil, reports whether a path given by the user belongs to this driver.
	Claims func(path string) bool
}

// State is the result of a probe.
type State uint8

// Results of a probe.
const (
	Loaded  State = iota // devices are available
	Skipped              // no device of this kind on this machine
	Failed               // a device exists but does not work
)

func (s State) String() string {
	return [...]string{"loaded", "skipped", "failed"}[min(s, Failed)]
}

// Outcome describes the result of a probe.
type Outcome struct {
	State  State
	Reason string   // the reason if skipped or failed; the devices found if loaded
	Paths  []string // paths of the devices found, "" for a device without one
}

// Drivers returns the drivers of this build in order of preference.
func Drivers() []*Driver { return drivers }

// Load opens a device and loads a program onto it. name is "auto", a driver's name, or the path of a device. "auto" selects the first
// device with the program's configuration that supports the program. A device that is already open is shared; every user must close it.
// Errors are *DeviceError.
func Load(name string, p *Program) (Device, Network, error) {
	var found Device
	var net Network
	err := try(name, p.Config, func(d Device) (err error) {
		if net, err = d.Load(p); err != nil {
			d.Close()
			return err
		}
		found = d
		return nil
	})
	return found, net, err
}

// try opens the devices of a name until take accepts one. take closes a device that it rejects.
func try(name string, want isa.Config, take func(Device) error) error {
	if name == "" || name == "auto" {
		return tryAll(want, take)
	}
	for _, d := range drivers {
		path, ok := "", d.Name == name
		if !ok && d.Claims != nil && d.Claims(name) {
			path, ok = name, true
		}
		if ok {
			dev, err := openFitting(d, path, want)
			if err != nil {
				return err
			}
			return take(dev)
		}
	}
	return &DeviceError{Device: name, Op: "open", Reason: ErrMissing,
		Err: fmt.Errorf("want auto, a device's path, or one of %s", names())}
}

func names() string {
	var s []string
	for _, d := range drivers {
		s = append(s, d.Name)
	}
	return strings.Join(s, ", ")
}

// tryAll tries the devices of the "auto" choice. A device that supports the program but fails to
// load it is not skipped.
func tryAll(want isa.Config, take func(Device) error) error {
	var misses []error
	for _, d := range drivers {
		if !d.Auto {
			continue
		}
		for _, path := range d.Probe().Paths {
			dev, err := openFitting(d, path, want)
			if err == nil {
				if err = take(dev); err == nil || !errors.Is(err, ErrUnsupported) {
					return err
				}
			}
			misses = append(misses, err)
		}
	}
	return &DeviceError{Device: "auto", Op: "open", Reason: ErrMissing, Err: errors.Join(misses...)}
}

func openFitting(d *Driver, path string, want isa.Config) (Device, error) {
	dev, err := open(d, path)
	if err != nil {
		return nil, err
	}
	info := dev.Info()
	if info.Any {
		return dev, nil
	}
	if err := info.Config.Runs(want); err != nil {
		dev.Close()
		return nil, &DeviceError{Device: d.Name, Op: "open", Reason: ErrUnsupported, Err: err}
	}
	return dev, nil
}

// shared is a device with several users.
type shared struct {
	Device
	key   shareKey
	users int
}

type shareKey struct{ driver, path string }

var (
	openMu sync.Mutex
	opened = map[shareKey]*shared{}
)

// open opens a device or shares an open one.
func open(d *Driver, path string) (Device, error) {
	openMu.Lock()
	defer openMu.Unlock()
	key := shareKey{d.Name, path}
	s := opened[key]
	if s == nil {
		dev, err := d.Open(path)
		if err != nil {
			return nil, err
		}
		s = &shared{Device: dev, key: key}
		opened[key] = s
	}
	s.users++
	return &handle{shared: s}, nil
}

// handle is one user's reference to a shared device.
type handle struct {
	*shared
	once sync.Once
}

// Close releases the device; the last user closes it.
func (h *handle) Close() error {
	var err error
	h.once.Do(func() {
		openMu.Lock()
		defer openMu.Unlock()
		if h.users--; h.users == 0 {
			delete(opened, h.key)
			err = h.Device.Close()
		}
	})
	return err
}
