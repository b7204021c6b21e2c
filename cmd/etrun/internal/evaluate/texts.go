package evaluate

// Texts counts how far texts that were read are from those of samples.
type Texts struct {
	Samples    int
	Exact      int // read without an error
	Characters int // of the samples
	Edits      int // characters to insert, remove or change
}

// Add counts a text that was read, and returns the edits that make it the sample's.
func (t *Texts) Add(sample, read string) int {
	want, got := []rune(sample), []rune(read)
	n := edits(want, got)
	t.Samples++
	t.Characters, t.Edits = t.Characters+len(want), t.Edits+n
	if n == 0 {
		t.Exact++
	}
	return n
}

// Rate returns the character error rate: edits over characters.
func (t *Texts) Rate() float64 { return float64(t.Edits) / max(float64(t.Characters), 1) }

func edits(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j, y := range b {
			change := diagonal
			if x != y {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
