package jinja

import (
	"sort"
	"strings"
)

// folded returns a string in lower case, other values as they are.
func folded(v any) any {
	if s, ok := v.(string); ok {
		return strings.ToLower(s)
	}
	return v
}

// sortBy sorts elements by a key.
func (r *run) sortBy(items []any, reverse bool, key func(v any) (any, error)) ([]any, error) {
	type keyed struct{ key, item any }
	list := make([]keyed, len(items))
	for i, x := range items {
		k, err := key(x)
		if err != nil {
			return nil, err
		}
		list[i] = keyed{k, x}
	}
	var failed error
	sort.SliceStable(list, func(i, k int) bool {
		c, err := r.compare(list[i].key, list[k].key)
		if err == nil {
			err = r.step(1)
		}
		if failed == nil {
			failed = err
		}
		if reverse {
			return c > 0
		}
		return c < 0
	})
	sorted := make([]any, len(items))
	for i := range list {
		sorted[i] = list[i].item
	}
	return sorted, failed
}

// sortKey is the key that the arguments of a filter select.
func (r *run) sortKey(attribute any, exact bool) func(v any) (any, error) {
	return func(v any) (_ any, err error) {
		if attribute != nil {
			if v, err = r.path(v, attribute); err != nil {
				return nil, err
			}
		}
		if exact {
			return v, nil
		}
		return folded(v), r.read(v)
	}
}

func sortFilter(r *run, v any, c *call) (any, error) {
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	key := r.sortKey(c.arg(2, "attribute", nil), truth(c.arg(1, "case_sensitive", false)))
	items, err = r.sortBy(items, truth(c.arg(0, "reverse", false)), key)
	return &List{Items: items}, err
}

func dictsortFilter(r *run, v any, c *call) (any, error) {
	pairs, err := itemsFilter(r, v, nil)
	if err != nil {
		return nil, err
	}
	by := 0
	if c.arg(1, "by", "key") == "value" {
		by = 1
	}
	key := r.sortKey(by, truth(c.arg(0, "case_sensitive", false)))
	items, err := r.sortBy(pairs.(*List).Items, truth(c.arg(2, "reverse", false)), key)
	return &List{Items: items}, err
}

func uniqueFilter(r *run, v any, c *call) (any, error) {
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	key := r.sortKey(c.arg(1, "attribute", nil), truth(c.arg(0, "case_sensitive", false)))
	list, seen := &List{}, &List{}
	for _, x := range items {
		k, err := key(x)
		if err != nil {
			return nil, err
		}
		known, err := r.in(k, seen)
		if err != nil {
			return nil, err
		}
		if !known {
			list.Items, seen.Items = append(list.Items, x), append(seen.Items, k)
		}
	}
	return list, nil
}

// extreme is the filter min or max.
func extreme(sign int) filterFunc {
	return func(r *run, v any, c *call) (any, error) {
		items, err := r.items(v)
		if err != nil {
			return nil, err
		}
		if len(items) == 0 {
			return undefined{"of no elements"}, nil
		}
		key := r.sortKey(c.arg(1, "attribute", nil), truth(c.arg(0, "case_sensitive", false)))
		sorted, err := r.sortBy(items, sign > 0, key)
		if err != nil {
			return nil, err
		}
		return sorted[0], nil
	}
}
