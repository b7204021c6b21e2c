package ethosu

// NamedKeys lists the named data that a payload asks for, there or not. It decodes
// nothing else.
func NamedKeys(payload []byte) ([]string, error) {
	var asked keys
	_, err := parse(payload, &asked)
	if len(asked) > 0 { // the bytes that stand for them are not what a payload needs
		return asked, nil
	}
	return nil, err
}

// keys are the names that a payload asks for; nothing is found under them.
type keys []string

// Named notes a name.
func (k *keys) Named(key string) ([]byte, bool) {
	*k = append(*k, key)
	return nil, true
}
