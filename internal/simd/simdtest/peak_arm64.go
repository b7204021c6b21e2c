//go:build !purego

package simdtest

func peak(_, n int) { peak4(n) }

func peak4(n int)
