package serve

import "context"

// Client is whose a request is. What the server keeps for one client is used for no other, and clients share a model's instances
// evenly. The zero value is a client of which nothing is known.
type Client struct {
	Credential string // a digest of what it authenticates with, empty for nothing
	Address    string // of a client without a credential
	Refused    bool   // it lacks a credential, and may only ask for what names no model
}

// clientKey is the key of a request's client in its context.
type clientKey struct{}

// WithClient returns a context of a client's request.
func WithClient(ctx context.Context, c Client) context.Context {
	return context.WithValue(ctx, clientKey{}, c)
}

// ClientOf returns the client whose request has a context.
func ClientOf(ctx context.Context) Client {
	c, _ := ctx.Value(clientKey{}).(Client)
	return c
}
