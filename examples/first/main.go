// Command first runs a program once: the example of the README.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/kernels/tensor"
)

func main() {
	prog, err := etrun.Open("testdata/digits/xnnpack.pte", etrun.WithDelegates(all.Backends()...))
	if err != nil {
		log.Fatal(err)
	}
	defer prog.Close()
	ctx := context.Background()
	m, err := prog.Load(ctx, "forward")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	if err := m.SetInput(0, tensor.New(tensor.Float32, 1, 1, 8, 8)); err != nil {
		log.Fatal(err)
	}
	if err := m.Execute(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(tensor.Data[float32](m.Output(0).Tensor)) // valid until the next Execute
}
