package session

import (
	"slices"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun/cmd/etrun/internal/bytesize"
	"github.com/etrun-go/etrun/cmd/etrun/internal/input"
)

// software is the device that is no device.
const software = "npu"

// Isolated are the flags of a process that opens a program as these options say, and opens
// no files but those that it is given: paths of data are replaced by replace.
func (o *Options) Isolated(replace func(path string) string) (args []string, err error) {
	switch {
	case o.weights != "":
		return nil, Usage("--weights-cache with --isolate: the process writes no files")
	case o.fvp != "" || !slices.Contains([]string{"", "auto", software}, o.Device):
		return nil, Usage("--device %s with --isolate: the process opens no devices, want npu", o.deviceName())
	case slices.ContainsFunc(o.qparams, func(q quantization) bool { return q.isFile() }):
		return nil, Usage("--qparams FILE.json with --isolate: want the outputs themselves")
	}
	with := *o
	with.Device, with.data = software, nil
	for _, path := range o.data {
		with.data = append(with.data, replace(input.Stdin(path)))
	}
	return with.Arguments(), nil
}

// Arguments are the flags that give a command these options.
func (o *Options) Arguments() (args []string) {
	with := &Options{}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	with.AddFlags(flags)
	*with = *o
	flags.VisitAll(func(f *pflag.Flag) {
		for _, word := range wordsOf(f) {
			args = append(args, "--"+f.Name+"="+word)
		}
	})
	return args
}

// Files are the files of the options that determine results: external weights, and those of quantizations.
func (o *Options) Files() []string {
	list := slices.Clone(o.data)
	for _, q := range o.qparams {
		if q.isFile() {
			list = append(list, q.text)
		}
	}
	return list
}

// wordsOf are the words that give a flag its value, none for the default.
func wordsOf(f *pflag.Flag) []string {
	if _, size := f.Value.(*bytesize.Size); !size && f.Value.String() == f.DefValue {
		return nil
	}
	return FlagWords(f)
}

// FlagWords are the words that give a flag its value, one for each time that it is given.
func FlagWords(f *pflag.Flag) []string {
	switch v := f.Value.(type) {
	case interface{ GetSlice() []string }:
		return v.GetSlice()
	case *bytesize.Size:
		return []string{strconv.FormatInt(int64(*v), 10)} // String rounds
	}
	return []string{f.Value.String()}
}
