package openai

import (
	"context"
	"crypto/sha256"

	"github.com/etrun-go/etrun/serve"
)

// owner is whose computed tokens a session has. Others never continue from them, so that neither the count of cached tokens nor the
// time to the first token depends on their prompts.
type owner struct {
	client serve.Client
	salt   [sha256.Size]byte // of the request's cache_salt, zero for none
}

// ownerOf returns the owner of a request's prompts.
func ownerOf(ctx context.Context, salt *string) owner {
	o := owner{client: serve.ClientOf(ctx)}
	if salt != nil {
		o.salt = sha256.Sum256([]byte(*salt))
	}
	return o
}

// serves reports whether an owner may use the session: it is its own, or has not been used but for the self-test.
func (h *idleSession) serves(o owner) bool {
	return h.owner == o || h.owner == owner{} && len(h.tokens) == 0
}
