package elementwise

// The functions below are small enough for the compiler to inline them, and the literal that a kernel passes as f,
// into one loop. A function value instead of a literal would be called for every element.

func map1[C compute](k *block[C], f func(x C) C) {
	out, a := k.out, k.a[:len(k.out)]
	for i := range out {
		out[i] = f(a[i])
	}
}

func map2[C compute](k *block[C], f func(x, y C) C) {
	out, a, b := k.out, k.a[:len(k.out)], k.b[:len(k.out)]
	for i := range out {
		out[i] = f(a[i], b[i])
	}
}

func map3[C compute](k *block[C], f func(x, y, z C) C) {
	out, a, b, c := k.out, k.a[:len(k.out)], k.b[:len(k.out)], k.c[:len(k.out)]
	for i := range out {
		out[i] = f(a[i], b[i], c[i])
	}
}

func test1[C compute](k *block[C], f func(x C) bool) {
	out, a := k.test, k.a[:len(k.test)]
	for i := range out {
		out[i] = answer(f(a[i]))
	}
}

func test2[C compute](k *block[C], f func(x, y C) bool) {
	out, a, b := k.test, k.a[:len(k.test)], k.b[:len(k.test)]
	for i := range out {
		out[i] = answer(f(a[i], b[i]))
	}
}

func answer(yes bool) (bit uint8) {
	if yes {
		bit = 1
	}
	return bit
}
