//go:build cgo

package main

// #include <stdlib.h>
//
// static char *volatile kept[64]; // written only: the compiler must not drop it
// static int n_kept;
// static void keep(char *text) { kept[n_kept++] = text; }
import "C"

// forever returns a string that is valid until the process ends. It is reachable from C, too:
// leak detectors do not see references of Go.
func forever(text string) *C.char {
	s := C.CString(text)
	C.keep(s)
	return s
}
