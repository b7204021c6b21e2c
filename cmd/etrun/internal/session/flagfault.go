package session

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// wanted are the values of the types of flags whose errors name functions of Go.
var wanted = map[string]string{
	"duration": "a time such as 30s or 1m30s", "int": "an integer", "int64": "an integer", "uint64": "an integer from 0",
	"float32": "a number", "float64": "a number", "bool": "true or false",
}

// FlagFault returns the error of a flag's value in the words of the command line: those of the packages that parse numbers and times
// are replaced.
func FlagFault(err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	cause := invalid.Unwrap()
	_, number := errors.AsType[*strconv.NumError](cause)
	want := wanted[invalid.GetFlag().Value.Type()]
	if want == "" || !number && !strings.HasPrefix(cause.Error(), "time: ") {
		return err
	}
	what := strings.TrimSuffix(err.Error(), ": "+cause.Error())
	if errors.Is(cause, strconv.ErrRange) {
		return fmt.Errorf("%s: out of range", what)
	}
	return fmt.Errorf("%s: want %s", what, want)
}
