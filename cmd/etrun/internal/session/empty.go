package session

import (
	"fmt"
	"slices"

	"github.com/spf13/pflag"
)

// emptyAllowed is the placeholder in the usage of flags whose values may be empty.
const emptyAllowed = "TEXT"

// RejectEmpty rejects flags with an empty value, which is usually that of an unset shell variable: an
// empty --token-file or --trust would turn the check off.
func RejectEmpty(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		if fault := CheckEmpty(f, values); fault != nil && err == nil {
			err = Usage("--%s %w", f.Name, fault)
		}
	})
	return err
}

// CheckEmpty returns an error without the flag's name if one of its values is an empty string, unless
// the placeholder in its usage is TEXT.
func CheckEmpty(f *pflag.Flag, values []string) error {
	if kind := f.Value.Type(); kind != "string" && kind != "stringArray" || !slices.Contains(values, "") {
		return nil
	}
	want, _ := pflag.UnquoteUsage(f)
	if want == emptyAllowed {
		return nil
	}
	return fmt.Errorf("is empty, want %s", want)
}
