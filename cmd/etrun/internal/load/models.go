package load

import (
	"context"
	"slices"
)

// Models returns the names of the server's models, sorted.
func (c *Client) Models(ctx context.Context) ([]string, error) {
	list, err := c.index(ctx)
	slices.Sort(list)
	return slices.Compact(list), err
}

// index returns the name of each version of each model.
func (c *Client) index(ctx context.Context) (names []string, err error) {
	if c.rpc {
		return c.indexRPC(ctx)
	}
	var list []struct{ Name string }
	err = c.Post(ctx, "/v2/repository/index", []byte("{}"), &list)
	for _, m := range list {
		names = append(names, m.Name)
	}
	return names, err
}

// TextModel is a model in the list of OpenAI's API.
type TextModel struct {
	ID           string
	Capabilities []string // such as completion and chat; empty if the server does not say
}

// TextModels returns the models that answer in OpenAI's API.
func (c *Client) TextModels(ctx context.Context) ([]TextModel, error) {
	var list struct{ Data []TextModel }
	err := c.Get(ctx, "/v1/models", &list)
	return list.Data, err
}

// Can reports whether the model has a capability, as far as the server says.
func (m *TextModel) Can(capability string) bool {
	return len(m.Capabilities) == 0 || slices.Contains(m.Capabilities, capability)
}
