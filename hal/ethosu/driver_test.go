package ethosu

import (
	"errors"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/hal/ethosu/ethosutest"
	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// planned is a device whose Load returns a given result.
type planned struct {
	info   Info
	load   error
	closes *int
}

func (p *planned) Info() Info { return p.info }

func (p *planned) Load(*Program) (Network, error) { return nil, p.load }

func (p *planned) Close() error { *p.closes++; return nil }

// TestAutoGoesOn checks that the automatic choice continues after a driver whose devices reject a
// program, cannot be opened, or fail.
func TestAutoGoesOn(t *testing.T) {
	p := programOf(t, ethosutest.Find(t, "u85-256/add/d0"))
	u55, _ := isa.ParseConfig(0x1807, 0)
	refused := &DeviceError{Device: "x", Op: "load", Reason: ErrUnsupported}
	broken := &DeviceError{Device: "x", Op: "load", Reason: ErrFault}
	closes := 0
	driver := func(name string, found State, open error, d planned) *Driver {
		d.closes = &closes
		var paths []string
		if found == Loaded {
			paths = []string{"/dev/" + name}
		}
		return &Driver{Name: name, Auto: true, Probe: func() Outcome { return Outcome{State: found, Paths: paths} },
			Open: func(string) (Device, error) {
				if open != nil {
					return nil, open
				}
				return &d, nil
			}}
	}
	fits := Info{Driver: "fits", Config: p.Config}
	absent := driver("absent", Skipped, nil, planned{})
	locked := driver("locked", Loaded, refused, planned{})
	other := driver("other", Loaded, nil, planned{info: Info{Config: u55}})
	picky := driver("picky", Loaded, nil, planned{info: fits, load: refused})
	faulty := driver("faulty", Loaded, nil, planned{info: fits, load: broken})
	good := driver("good", Loaded, nil, planned{info: fits})
	for _, c := range []struct {
		name    string
		drivers []*Driver
		closes  int
		want    error
	}{
		{"the first", []*Driver{good, faulty}, 0, nil},
		{"past those that do not take it", []*Driver{absent, locked, other, picky, good}, 2, nil},
		{"not past a fault", []*Driver{picky, faulty, good}, 2, ErrFault},
		{"none", []*Driver{absent, locked, other, picky}, 2, ErrMissing},
	} {
		t.Run(c.name, func(t *testing.T) {
			saved := drivers
			defer func() { drivers = saved }()
			drivers, closes = slices.Clone(c.drivers), 0
			d, _, err := Load("auto", p)
			if !errors.Is(err, c.want) || (d != nil) != (c.want == nil) {
				t.Fatalf("got %v, %v, want %v", d, err, c.want)
			}
			if closes != c.closes {
				t.Errorf("%d devices were closed, want %d", closes, c.closes)
			}
			if d != nil {
				d.Close()
			}
		})
	}
}
