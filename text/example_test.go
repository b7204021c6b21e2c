package text_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/text"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// must handles the errors that an example does not explain.
func must[T any](x T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return x
}

// open loads the model of the examples, which has random weights and a token per byte.
func open(ctx context.Context) *text.Model {
	prog := must(etrun.Open("testdata/dynamic.pte", etrun.WithDelegates(all.Backends()...)))
	tok := must(tokenizer.Open("testdata/bytes.json"))
	return must(text.Load(ctx, prog, tok))
}

// Generate yields pieces of text as they come. The last one says why the text ended.
func Example() {
	ctx := context.Background()
	model := open(ctx)
	s, err := model.NewSession(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	var story strings.Builder
	for piece, err := range s.Generate(ctx, "Once upon", text.Options{MaxTokens: 10}) {
		if err != nil {
			log.Fatal(err)
		}
		story.WriteString(piece.Text) // a program would print it
		if piece.Finish != "" {
			fmt.Println(piece.Finish, piece.Stats.Prompt, piece.Stats.Generated)
		}
	}
	// Output: length 9 10
}

// A session computes only what is new in a prompt; a fork goes on from the same text.
func ExampleSession_Fork() {
	ctx := context.Background()
	s := must(open(ctx).NewSession(ctx))
	defer s.Close()
	ask := func(s *text.Session, prompt string) {
		for piece, err := range s.Generate(ctx, prompt, text.Options{MaxTokens: 1}) {
			if err != nil {
				log.Fatal(err)
			}
			if piece.Finish != "" {
				fmt.Println(piece.Stats.Reused, "of", piece.Stats.Prompt, "tokens reused")
			}
		}
	}
	ask(s, "A long document. ")
	fork := must(s.Fork(ctx))
	defer fork.Close()
	ask(s, "A long document. Who?")
	ask(fork, "A long document. Why?")
	// Output:
	// 0 of 17 tokens reused
	// 17 of 21 tokens reused
	// 17 of 21 tokens reused
}

// The same seed gives the same text.
func ExampleSampling() {
	ctx := context.Background()
	s := must(open(ctx).NewSession(ctx))
	defer s.Close()
	write := func(seed uint64) (story string) {
		s.Reset()
		o := text.Options{MaxTokens: 10, Sampling: text.Sampling{Temperature: 0.8, TopP: 0.9, Seed: seed}}
		for piece, err := range s.Generate(ctx, "Once upon", o) {
			if err != nil {
				log.Fatal(err)
			}
			story += piece.Text
		}
		return story
	}
	first, again, other := write(1), write(1), write(2)
	fmt.Println(first == again, first == other)
	// Output: true false
}

// A prompt that exceeds the context is an error with both numbers; a text that reaches the end of
// the context ends there.
func ExamplePromptError() {
	ctx := context.Background()
	s := must(open(ctx).NewSession(ctx))
	defer s.Close()
	for _, prompt := range []string{strings.Repeat("x", 40), strings.Repeat("x", 30)} {
		for piece, err := range s.Generate(ctx, prompt, text.Options{}) {
			if e, ok := errors.AsType[*text.PromptError](err); ok {
				fmt.Println(e.Tokens, "tokens exceed", e.Context)
			} else if piece.Finish == text.FinishContext {
				fmt.Println("the context is full after", piece.Stats.Generated, "tokens")
			}
		}
	}
	// Output:
	// 40 tokens exceed 32
	// the context is full after 3 tokens
}

// Templates write the prompt of a conversation. Other templates are JSON files.
func ExampleNewTemplate() {
	ctx := context.Background()
	model := open(ctx)
	template := must(text.NewTemplate("mine", `{"message": "{role}:\n{text}\n\n", "trim": true}`))
	prompt, _, err := model.EncodeChat(template, []text.Message{{Role: "user", Content: "Hello "}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%q\n", must(tokenizer.Decode(model.Tokenizer(), prompt)))
	// Output: "user:\nHello\n\nassistant:\n"
}
