package session

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// texts is a flag that may be repeated. That of pflag writes its default as CSV when it is added: 4 KiB for each flag of each command.
type texts struct {
	list    *[]string
	changed bool
}

var _ pflag.SliceValue = (*texts)(nil)

// Texts returns a flag that appends to a list. The first text replaces what the list had: it is the default.
func Texts(list *[]string) pflag.Value { return &texts{list: list} }

// Set implements [pflag.Value].
func (t *texts) Set(text string) error {
	if !t.changed {
		*t.list = nil
	}
	t.changed = true
	return t.Append(text)
}

// Type implements [pflag.Value].
func (t *texts) Type() string { return "stringArray" }

// String implements [pflag.Value].
func (t *texts) String() string {
	if len(*t.list) == 0 {
		return ""
	}
	return "[" + strings.Join(*t.list, ",") + "]"
}

// Append implements [pflag.SliceValue].
func (t *texts) Append(text string) error {
	*t.list = append(slices.Clip(*t.list), text)
	return nil
}

// Replace implements [pflag.SliceValue].
func (t *texts) Replace(list []string) error {
	*t.list = list
	return nil
}

// GetSlice implements [pflag.SliceValue].
func (t *texts) GetSlice() []string { return *t.list }
