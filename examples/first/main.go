// Command first runs a program once. It is the example of the README.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
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
	scores, err := etrun.Run[float32](ctx, m, make([]float32, 8*8)) // scores are valid until the next Run
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(scores)
}
