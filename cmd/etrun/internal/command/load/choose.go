package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/load"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
)

// maxListed is the maximum number of models in an error.
const maxListed = 20

// listed returns names for an error.
func listed(names []string) string {
	var shown []string
	for _, name := range names[:min(len(names), maxListed)] {
		shown = append(shown, cli.Printable(name))
	}
	if n := len(names) - len(shown); n > 0 {
		shown = append(shown, fmt.Sprintf("%d more", n))
	}
	return strings.Join(shown, ", ")
}

// choose returns the model that is measured: the one of --model, else the only one.
func (r *requests) choose(ctx context.Context, c *load.Client) (string, error) {
	switch {
	case r.text:
		return r.chooseText(ctx, c)
	case r.model != "":
		return r.model, nil
	}
	names, err := c.Models(ctx)
	switch {
	case err != nil:
		return "", fmt.Errorf("no --model: %w", err)
	case len(names) == 0:
		return "", fmt.Errorf("the server has no models")
	case len(names) > 1:
		return "", session.Usage("no --model: the server has %d models, %s", len(names), listed(names))
	}
	return names[0], nil
}

// unknown adds the models of the server to the error about one that it does not have.
func (r *requests) unknown(ctx context.Context, c *load.Client, name string, err error) error {
	names, err2 := c.Models(ctx)
	if err2 != nil || slices.Contains(names, name) {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("%w; the server has no models", err)
	}
	return fmt.Errorf("%w; the server has %s", err, listed(names))
}

// withoutTensors is the error about a model that has no inputs and outputs.
func withoutTensors(ctx context.Context, c *load.Client, name string) error {
	list, _ := c.TextModels(ctx) // without a list it may be any of them
	for _, m := range list {
		if m.ID == name && !m.Can("completion") {
			return session.Usage("model %s computes vectors of texts (/v1/embeddings), which are not measured", cli.Printable(name))
		}
	}
	return session.Usage("model %s has no inputs and outputs; a language model needs --text", cli.Printable(name))
}

// chooseText returns the model that generates texts. A server may answer for names that it does not list.
func (r *requests) chooseText(ctx context.Context, c *load.Client) (string, error) {
	capability, what := "completion", "generate texts"
	if r.chat {
		capability, what = "chat", "chat: it has no template"
	}
	list, err := c.TextModels(ctx)
	if err != nil && r.model == "" {
		return "", fmt.Errorf("no --model: %w", err)
	}
	var able []string
	for _, m := range list {
		if m.Can(capability) {
			able = append(able, m.ID)
		}
	}
	others := "; no model of the server can"
	if len(able) > 0 {
		others = "; the server has " + listed(able)
	}
	known := slices.ContainsFunc(list, func(m load.TextModel) bool { return m.ID == r.model })
	switch {
	case r.model == "" && len(able) == 1:
		return able[0], nil
	case r.model == "" && len(able) == 0:
		return "", session.Usage("the server has no model that can %s", strings.TrimSuffix(what, ": it has no template"))
	case r.model == "":
		return "", session.Usage("no --model: the server has %d language models, %s", len(able), listed(able))
	case known && !slices.Contains(able, r.model):
		return "", session.Usage("model %s cannot %s%s", cli.Printable(r.model), what, others)
	}
	r.unlisted = !known && err == nil
	return r.model, nil
}

// try sends a request for a model that the server does not list, and returns its error with the models of the server.
func (r *requests) try(ctx context.Context, c *load.Client, s *load.Texts) error {
	if !r.unlisted {
		return nil
	}
	_, err := s.Send(ctx, 0)
	if f, ok := errors.AsType[*load.Failure](err); !ok || !strings.HasPrefix(string(f.Class), "status 4") {
		return nil // it is measured
	}
	list, err2 := c.TextModels(ctx)
	if err2 != nil {
		return err
	}
	var names []string
	for _, m := range list {
		names = append(names, m.ID)
	}
	return fmt.Errorf("model %s: %w; the server lists %s", cli.Printable(r.model), err, cmp.Or(listed(names), "no models"))
}
