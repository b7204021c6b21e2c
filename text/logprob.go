package text

import "math"

// Candidate is a possible next token, with the natural logarithm of its probability.
type Candidate struct {
	ID      int
	LogProb float32
}

// logSum returns the logarithm of the sum of the exponentials of finite logits.
func logSum(logits []float32) float64 {
	top := float64(logits[argmax(logits)])
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x) - top)
	}
	return top + math.Log(sum)
}

// candidates appends the n most likely tokens to list, the most likely first.
func candidates(list []Candidate, logits []float32, norm float64, n int) []Candidate {
	begin := len(list)
	for id, x := range logits {
		p := float32(float64(x) - norm)
		if len(list)-begin == n && (n == 0 || p <= list[len(list)-1].LogProb) {
			continue
		}
		at := len(list)
		for at > begin && list[at-1].LogProb < p {
			at--
		}
		if len(list)-begin < n {
			list = append(list, Candidate{})
		}
		copy(list[at+1:], list[at:])
		list[at] = Candidate{id, p}
	}
	return list
}
