// Package text generates text with language models in ExecuTorch programs.
//
//	prog, err := etrun.Open("model.pte", etrun.WithDelegates(all.Backends()...))
//	tok, err := tokenizer.Open("tokenizer.json")
//	model, err := text.Load(ctx, prog, tok)
//	s, err := model.NewSession(ctx)
//	for piece, err := range s.Generate(ctx, "Once upon a time", text.Options{MaxTokens: 100}) {
//		if err != nil {
//			return err
//		}
//		fmt.Print(piece.Text)
//	}
//
// # Models and sessions
//
// A [Model] is a program whose method "forward" takes tokens and returns logits, with a tokenizer.
// It is immutable and safe for concurrent use. [Load] reads the exporter's metadata methods, such
// as get_max_context_len and get_eos_ids, compares them with the method's inputs and outputs and
// with the tokenizer, and derives how the program is called: see [Info].
//
// A [Session] holds one text: an instance of the method with its key-value cache. It belongs to one
// goroutine at a time: a call during another call returns etrun.ErrBusy and changes nothing. A
// prompt is always the whole text from its beginning. Its tokens that match the text of the last
// call are not computed again: the next message of a conversation, or a second question about a long
// document, costs only its new tokens. [Session.Fork] copies a session.
//
// # Vectors of texts
//
// An [Embedder] is a program that encodes tokens, such as BERT: it computes a vector of each text.
//
// # Numbers
//
// The same program, engine, prompt and seed give the same text. A reused prefix may have been
// computed in other parts than a prompt that is computed at once. The engines' results for one
// token and for several may differ in the last bits, which can change the choice between tokens
// whose logits differ as little.
package text
