// Command daemon runs a program on portable kernels for every line of numbers (a JSON array)
// of standard input. scripts/size.sh measures what etrun adds to an executable.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/etrun-go/etrun"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: daemon MODEL")
	}
	prog, err := etrun.Open(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer prog.Close()
	pool, err := prog.NewPool("", 2)
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if err := reply(context.Background(), pool, lines.Bytes()); err != nil {
			log.Print(err)
		}
	}
}

func reply(ctx context.Context, pool *etrun.Pool, line []byte) error {
	var x []float32
	if err := json.Unmarshal(line, &x); err != nil {
		return err
	}
	return pool.Do(ctx, func(m *etrun.Method) error {
		y, err := etrun.Run[float32](ctx, m, x)
		if err != nil {
			return err
		}
		_, err = fmt.Println(y)
		return err
	})
}
