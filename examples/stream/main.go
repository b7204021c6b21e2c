// Command stream runs a streaming model: it reads frames of float32 samples from standard
// input, runs the model on each, and prints a score for each. The model keeps earlier frames
// in its state. With -url the frames are sent to an inference server, as requests of one
// sequence, and the server keeps the state:
//
//	etrun serve detector=testdata/stream/detector.pte &
//	go run ./examples/stream -url http://localhost:8080/v2/models/detector/infer <testdata/stream/samples.f32.bin
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/serve/oip"
)

func main() {
	path := flag.String("model", "testdata/stream/detector.pte", "program to run locally")
	url := flag.String("url", "", "URL of a model on a server")
	flag.Parse()
	if err := run(context.Background(), *path, *url, bufio.NewReader(os.Stdin), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// frame is the number of samples per run.
const frame = 128

// listener scores the next frame of a stream.
type listener interface {
	listen(ctx context.Context, samples []float32) (score float32, err error)
	Close() error
}

// run prints the scores of a stream.
func run(ctx context.Context, path, url string, in io.Reader, out io.Writer) error {
	l, err := newListener(ctx, path, url)
	if err != nil {
		return err
	}
	defer l.Close()
	samples := make([]float32, frame)
	for at := 0; ; at += frame {
		_, err := io.ReadFull(in, tensor.BytesOf(samples))
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil // the rest is shorter than a frame
		}
		if err != nil {
			return err
		}
		score, err := l.listen(ctx, samples)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%d\t%v\n", at, score)
	}
}

func newListener(ctx context.Context, path, url string) (listener, error) {
	if url != "" {
		return &remote{url: url, sequence: rand.Text()}, nil
	}
	program, err := etrun.Open(path, etrun.WithDelegates(all.Backends()...))
	if err != nil {
		return nil, err
	}
	m, err := program.Load(ctx, "")
	if err != nil {
		return nil, errors.Join(err, program.Close())
	}
	return &local{program, m}, nil
}

// local is an instance of the model in this process. Its state persists between runs until
// Reset.
type local struct {
	program *etrun.Program
	*etrun.Method
}

func (l *local) listen(ctx context.Context, samples []float32) (float32, error) {
	scores, err := etrun.Run[float32](ctx, l.Method, samples)
	if err != nil {
		return 0, err
	}
	return scores[0], nil
}

func (l *local) Close() error { return errors.Join(l.Method.Close(), l.program.Close()) }

// remote is a sequence on a server, which reserves an instance of the model for it.
type remote struct {
	url, sequence string
	begun         bool
}

// limits are the limits of a response.
var limits = oip.Limits{Header: 4096, Body: 8192, Tensors: 4096, Inputs: 4}

func (r *remote) listen(ctx context.Context, samples []float32) (float32, error) {
	answer, err := r.ask(ctx, samples, oip.Parameters{"sequence_id": r.sequence, "sequence_start": !r.begun})
	if err != nil {
		return 0, err
	}
	r.begun = true
	scores := answer.Outputs[0]
	if scores.Datatype != "FP32" || len(scores.Data) != 4 {
		return 0, fmt.Errorf("%s %v, want one score", scores.Datatype, scores.Shape)
	}
	return tensor.View[float32](scores.Data)[0], nil
}

func (r *remote) ask(ctx context.Context, samples []float32, parameters oip.Parameters) (*oip.Response, error) {
	input := oip.Tensor{Name: "input_0", Datatype: "FP32", Shape: []int{1, frame}, Data: tensor.BytesOf(samples), Binary: true}
	body, header, err := (&oip.Request{Parameters: parameters, Inputs: []oip.Tensor{input}}).Append(nil)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set(oip.HeaderLength, strconv.Itoa(header))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1000)) // the status is the error
		return nil, fmt.Errorf("%s: %s", answer.Status, text)
	}
	response, err := oip.ReadResponse(answer.Body, answer.Header.Get(oip.HeaderLength), limits)
	if err == nil && len(response.Outputs) != 1 {
		err = fmt.Errorf("%d outputs, want 1", len(response.Outputs))
	}
	return response, err
}

// Close ends the sequence, with a last frame of silence.
func (r *remote) Close() error {
	if !r.begun {
		return nil
	}
	_, err := r.ask(context.Background(), make([]float32, frame), oip.Parameters{"sequence_id": r.sequence, "sequence_end": true})
	return err
}
