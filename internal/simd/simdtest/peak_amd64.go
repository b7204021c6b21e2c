//go:build !purego

package simdtest

func peak(lanes, n int) {
	if lanes == 16 {
		peak16(n)
	} else {
		peak8(n)
	}
}

func peak8(n int)

func peak16(n int)
