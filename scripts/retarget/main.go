// Command retarget makes libraries load on systems with an older glibc:
//
//	retarget lib/libXNNPACK.so.0.20241108
package main

import (
	"fmt"
	"os"

	"github.com/etrun-go/etrun/cbindings/xnn/retarget"
)

func main() {
	for _, path := range os.Args[1:] {
		if err := retarget.File(path, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "retarget:", err)
			os.Exit(1)
		}
	}
}
