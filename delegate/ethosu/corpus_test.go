package ethosu

import (
	"archive/zip"
	"context"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/hal/ethosu/isa"
	"github.com/etrun-go/etrun/hal/ethosu/npu"
)

func cases(t *testing.T) map[string]map[string][]byte {
	all := map[string]map[string][]byte{}
	files, _ := filepath.Glob("../../testdata/ethosu/*.zip")
	for _, f := range files {
		z, err := zip.OpenReader(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range z.File {
			r, err := e.Open()
			if err != nil {
				t.Fatal(e.Name, err)
			}
			b, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			id := strings.TrimSuffix(filepath.Base(f), ".zip") + "/" + path.Dir(e.Name)
			if all[id] == nil {
				all[id] = map[string][]byte{}
			}
			all[id][path.Base(e.Name)] = b
		}
		z.Close()
	}
	return all
}

func TestVectors(t *testing.T) {
	pool := cpu.NewPool(2)
	for id, files := range cases(t) {
		t.Run(id, func(t *testing.T) {
			c, err := parse(files["payload.vela"], nil)
			if err != nil {
				t.Fatal(err)
			}
			p, err := isa.ParsePayload(c.commands)
			if err != nil {
				t.Fatal(err)
			}
			prog, err := npu.Decode(p.Config, p.Stream)
			if err != nil {
				t.Fatal(err)
			}
			size := prog.Footprint()
			var regions isa.Regions
			var mem npu.Memory
			regions[0] = isa.Region{Kind: isa.Constants, Size: int64(len(c.weights)), Data: c.weights}
			mem[0] = c.weights
			regions[1] = isa.Region{Kind: isa.Scratch, Size: c.scratch}
			for i := 2; i < 5; i++ {
				if size[i] > 0 {
					regions[i] = isa.Region{Kind: isa.RegionKind(i) + 1, Size: size[i]}
				}
			}
			for i := 1; i < 5; i++ {
				mem[i] = make([]byte, regions[i].Size)
			}
			net, err := prog.Bind(&regions)
			if err != nil {
				t.Fatal(err)
			}
			run, err := net.NewRun(pool)
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range c.inputs {
				copy(mem[r.region][r.offset:], files[fmt.Sprintf("in%d.bin", i)])
			}
			if err := run.Execute(context.Background(), &mem, nil); err != nil {
				t.Fatal(err)
			}
			for i, r := range c.outputs {
				want := files[fmt.Sprintf("out%d.bin", i)]
				got := mem[r.region][r.offset:][:r.elements()*r.elemSize]
				bad := 0
				for j := range want {
					if want[j] != got[j] {
						bad++
					}
				}
				if len(want) != len(got) || bad > 0 {
					t.Errorf("output %d: %d of %d bytes differ", i, bad, len(want))
				}
			}
		})
	}
}
