// Package tokenizer turns text into the token ids of a language model, and ids into text.
package tokenizer

// Tokenizer turns text into token ids and back.
type Tokenizer interface {
	// Encode returns the ids of s. Control tokens named in s are plain text unless special is true; no BOS or EOS is added.
	Encode(s string, special bool) ([]int, error)
	// Append appends the bytes of id to b. The bytes of one token may be part of a UTF-8 sequence. Control tokens give none.
	Append(b []byte, id int) ([]byte, error)
	// Size is one more than the largest id.
	Size() int
	// ID is the id of a token by its text, such as "<|eot_id|>".
	ID(token string) (int, bool)
	// BOS and EOS are the ids that the file names, -1 where it names none.
	BOS() int
	EOS() []int
}
