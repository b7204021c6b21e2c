package ethosu

import (
	"context"
	"testing"

	"github.com/etrun-go/etrun/hal/ethosu/ethosutest"
	"github.com/etrun-go/etrun/hal/ethosu/isa"
	"github.com/etrun-go/etrun/hal/ethosu/npu"
)

// programOf returns a vector's program, as the delegate builds it.
func programOf(t testing.TB, v *ethosutest.Vector) *Program {
	t.Helper()
	c := v.Call(t)
	p := &Program{Config: c.Driver.Config, Commands: c.Driver.Stream, Payload: v.Block("cmd_data"), Container: v.Payload()}
	var err error
	if p.Stream, err = npu.Decode(p.Config, p.Commands); err != nil {
		t.Fatalf("%s: %v", v.Name, err)
	}
	r := &p.Regions
	r[0] = isa.Region{Kind: isa.Constants, Size: int64(len(c.Weights)), Data: c.Weights}
	r[1] = isa.Region{Kind: isa.Scratch, Size: c.Scratch}
	if n := p.Stream.Footprint()[2]; n > 0 {
		r[2] = isa.Region{Kind: isa.Fast, Size: n}
	}
	bind := func(rec *ethosutest.Record, kind isa.RegionKind) Binding {
		if rec.Region > 2 {
			r[rec.Region].Kind = kind
			r[rec.Region].Size = max(r[rec.Region].Size, int64(rec.Offset+rec.Bytes()))
		}
		return Binding{Region: rec.Region, Offset: rec.Offset, Shape: rec.Shape, ElemSize: rec.ElemSize}
	}
	for i := range c.Inputs {
		p.Inputs = append(p.Inputs, bind(&c.Inputs[i], isa.Inputs))
	}
	for i := range c.Outputs {
		p.Outputs = append(p.Outputs, bind(&c.Outputs[i], isa.Outputs))
	}
	return p
}

// at returns the memory of a binding.
func (b *Binding) at(j Job) []byte { return j.Region(b.Region)[b.Offset:][:b.Bytes()] }

// feed writes a vector's inputs.
func feed(v *ethosutest.Vector, p *Program, j Job) {
	for i := range p.Inputs {
		copy(p.Inputs[i].at(j), v.Files[ethosutest.InputFile(i)])
	}
}

// check compares a job's outputs with the vector's.
func check(t testing.TB, v *ethosutest.Vector, p *Program, j Job) {
	t.Helper()
	for i := range p.Outputs {
		ethosutest.Compare(t, v.Name+" "+ethosutest.OutputFile(i), p.Outputs[i].at(j), v.Files[ethosutest.OutputFile(i)])
	}
}

// runVector runs a vector on a device twice: remains of a run must not matter.
func runVector(t testing.TB, d Device, v *ethosutest.Vector) {
	t.Helper()
	p := programOf(t, v)
	n, err := d.Load(p)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	j, err := n.NewJob(JobOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for range 2 {
		feed(v, p, j)
		if _, err := j.Submit(context.Background()); err != nil {
			t.Fatal(err)
		}
		check(t, v, p, j)
	}
}

// newJob creates a job that ends with the test.
func newJob(t testing.TB, d Device, p *Program) Job {
	t.Helper()
	n, err := d.Load(p)
	if err != nil {
		t.Fatal(err)
	}
	j, err := n.NewJob(JobOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close(); n.Close() })
	return j
}
