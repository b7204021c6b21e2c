package ethosu

import (
	"context"
	"errors"
	"testing"
)

func TestQueueEndsWithContext(t *testing.T) {
	q := newQueue()
	if err := q.Enter(context.Background()); err != nil {
		t.Fatal(err)
	}
	why := errors.New("no patience")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	if err := q.Enter(ctx); !errors.Is(err, why) {
		t.Fatalf("entering a taken queue: got %v, want %v", err, why)
	}
	q.Leave()
	if err := q.Enter(context.Background()); err != nil {
		t.Fatalf("entering a free queue: %v", err)
	}
}
