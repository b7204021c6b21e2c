package ethosu

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// Driver is a carrier: a way to reach devices.
type Driver struct {
	Name string // by which users ask for it: "npu", "fvp", "drm", …
	Doc  string // one line for people
	// Auto allows the choice of "auto" to fall on it.
	Auto bool
	// Probe looks for devices without touching them.
	Probe func() Outcome
	// Open opens the device at path, one of those that Probe found or one that the
	// user named; "" is the first found.
	Open func(path string) (Device, error)
	// Claims says whether a path that the user named is this driver's, nil for none.
	Claims func(path string) bool
}

// State is how a probe ended.
type State uint8

// The three ends of a probe.
const (
	Loaded  State = iota // devices are there
	Skipped              // nothing of its kind is on this machine
	Failed               // something is there and does not work
)

func (s State) String() string {
	return [...]string{"loaded", "skipped", "failed"}[min(s, Failed)]
}

// Outcome is the result of a probe.
type Outcome struct {
	State  State
	Reason string   // why it was skipped or failed; what was found if it was loaded
	Paths  []string // of the devices found, "" for a device without one
}

// Drivers lists the carriers of this build, the preferred first.
func Drivers() []*Driver { return drivers }

// Open opens a device for programs of configuration want. name is "auto", a
// driver's name, or the path of a device. "auto" takes the first device whose
// configuration fits. A path that is open already is shared; every user closes what
// it got. Errors are *DeviceError.
func Open(name string, want isa.Config) (Device, error) {
	var found Device
	err := try(name, want, func(d Device) error { found = d; return nil })
	return found, err
}

// Load opens a device as [Open] does and loads a program onto it. "auto" goes on to
// the next device where one does not take the program.
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

// try opens the devices of a name until one is taken. Its taker closes one that it
// does not take.
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

// tryAll goes through the devices of the automatic choice. One that fails at a program
// which it takes is not passed over.
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

// shared is a device that several users hold.
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

// open opens a device or shares the open one.
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

// handle is one user's hold of a shared device.
type handle struct {
	*shared
	once sync.Once
}

// Close lets go of the device; the last user closes it.
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
