package text

import (
	"context"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// metadata holds the values of the exporter's metadata methods, -1 or nil for missing ones.
type metadata struct {
	bos, maxSeq, maxContext, vocabulary, layers int64
	eos                                         []int64
	cache                                       *bool
}

// maxMetadata bounds the numbers of metadata methods: the largest token id and context.
const maxMetadata = 1 << 28

// readMetadata runs the metadata methods that the program has.
func readMetadata(ctx context.Context, p *etrun.Program) (*metadata, error) {
	d := &metadata{bos: -1, maxSeq: -1, maxContext: -1, vocabulary: -1, layers: -1}
	for _, n := range []struct {
		name  string
		least int64
		to    *int64
	}{
		{"get_bos_id", -1, &d.bos},
		{"get_max_seq_len", 1, &d.maxSeq},
		{"get_max_context_len", 1, &d.maxContext},
		{"get_vocab_size", 1, &d.vocabulary},
		{"get_n_layers", 1, &d.layers},
	} {
		list, err := metaInts(ctx, p, n.name, n.least)
		if err != nil {
			return nil, err
		}
		if len(list) > 1 {
			return nil, &MetadataError{Name: n.name, Got: fmt.Sprintf("%d numbers", len(list)), Want: "one"}
		}
		if len(list) == 1 {
			*n.to = list[0]
		}
	}
	for _, name := range []string{"get_eos_ids", "get_eos_id"} {
		list, err := metaInts(ctx, p, name, -1)
		if err != nil {
			return nil, err
		}
		d.eos = append(d.eos, list...)
	}
	d.eos = slices.DeleteFunc(d.eos, func(id int64) bool { return id < 0 })
	flag, err := metaInts(ctx, p, "use_kv_cache", 0)
	if err == nil && len(flag) == 1 {
		cache := flag[0] != 0
		d.cache = &cache
	}
	return d, err
}

// metaInts returns the numbers of a metadata method, nil if the program does not have it.
func metaInts(ctx context.Context, p *etrun.Program, name string, least int64) ([]int64, error) {
	list := []int64{}
	err := metaValues(ctx, p, name, func(v tensor.Value) error {
		numbers, ok := intsOf(v)
		if !ok {
			return &MetadataError{Name: name, Got: "a " + v.Kind.String(), Want: "integers"}
		}
		for _, n := range numbers {
			if n < least || n > maxMetadata {
				return &MetadataError{Name: name, Got: fmt.Sprint(n), Want: fmt.Sprintf("a number from %d to %d", least, maxMetadata)}
			}
		}
		list = append(list, numbers...)
		return nil
	})
	return list, err
}

// metaValues calls each with the values of a metadata method, if the program has it.
func metaValues(ctx context.Context, p *etrun.Program, name string, each func(v tensor.Value) error) error {
	if !slices.Contains(p.MethodNames(), name) {
		return nil
	}
	m, err := p.Load(ctx, name)
	if err != nil {
		return err
	}
	defer m.Close()
	if m.NumInputs() > 0 {
		return &MetadataError{Name: name, Got: fmt.Sprintf("%d inputs", m.NumInputs()), Want: "none"}
	}
	if err := m.Execute(ctx); err != nil {
		return err
	}
	for i := range m.NumOutputs() {
		v, err := m.Output(i)
		if err != nil {
			return err
		}
		if err := each(v); err != nil {
			return err
		}
	}
	return nil
}

// metaNumbers returns the numbers of a metadata method, nil if the program does not have it, or it has none.
func metaNumbers(ctx context.Context, p *etrun.Program, name string) (list []float64, err error) {
	err = metaValues(ctx, p, name, func(v tensor.Value) error {
		if v.Kind == tensor.KindDouble {
			list = append(list, v.Double)
			return nil
		}
		numbers, _ := intsOf(v)
		for _, n := range numbers {
			list = append(list, float64(n))
		}
		return nil
	})
	return list, err
}

// intsOf returns the integers of a number, bool, list or tensor.
func intsOf(v tensor.Value) (list []int64, ok bool) {
	switch v.Kind {
	case tensor.KindInt:
		return []int64{v.Int}, true
	case tensor.KindBool:
		if v.Bool {
			return []int64{1}, true
		}
		return []int64{0}, true
	case tensor.KindIntList:
		return slices.Clone(v.IntList()), true
	case tensor.KindTensor:
		switch v.Tensor.DType {
		case tensor.Int64:
			return slices.Clone(tensor.Data[int64](v.Tensor)), true
		case tensor.Int32:
			for _, n := range tensor.Data[int32](v.Tensor) {
				list = append(list, int64(n))
			}
			return list, true
		}
	}
	return nil, false
}
