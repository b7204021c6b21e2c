package etrun_test

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// must is what the examples do with errors that they do not explain.
func must[T any](x T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return x
}

// Open a program, load a method, run it. A program needs a backend for each of its
// delegates: package all has those of this build.
func Example() {
	prog, err := etrun.Open("testdata/digits/xnnpack.pte", etrun.WithDelegates(all.Backends()...))
	if err != nil {
		log.Fatal(err)
	}
	defer prog.Close()
	ctx := context.Background()
	m, err := prog.Load(ctx, "forward")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	scores, err := etrun.Run[float32](ctx, m, digit(0)) // valid until the next Run
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the digit is a", largest(scores))
	// Output: the digit is a 0
}

// digit is a picture of 8 by 8 pixels of the test data.
func digit(i int) []float32 {
	data := must(os.ReadFile("testdata/digits/images.f32.bin"))
	pixels := make([]float32, 64)
	copy(tensor.BytesOf(pixels), data[256*i:])
	return pixels
}

func largest(scores []float32) (at int) {
	for i, s := range scores {
		if s > scores[at] {
			at = i
		}
	}
	return at
}

// What a method takes and gives is known without loading it.
func ExampleProgram_Meta() {
	prog := must(etrun.Open("testdata/pte/scalar_inputs.pte"))
	defer prog.Close()
	meta := must(prog.Meta("forward"))
	for i, in := range meta.Inputs {
		fmt.Println("input", i, in.Kind, in.DType, in.Sizes)
	}
	for i, out := range meta.Outputs {
		fmt.Println("output", i, out.Kind, out.DType, out.Sizes)
	}
	// Output:
	// input 0 tensor float32 [3 6]
	// input 1 int uint8 []
	// input 2 double uint8 []
	// input 3 bool uint8 []
	// output 0 tensor float32 [3 6]
	// output 1 tensor float32 []
}

// Run takes slices, tensors, numbers, bools and strings, and returns output 0. Get has
// the other outputs.
func ExampleRun() {
	prog := must(etrun.Open("testdata/pte/scalar_inputs.pte"))
	defer prog.Close()
	ctx := context.Background()
	m := must(prog.Load(ctx, "forward"))
	defer m.Close()
	x := make([]float32, 3*6)
	x[0] = 2
	scaled, err := etrun.Run[float32](ctx, m, x, 3, 0.5, true)
	if err != nil {
		log.Fatal(err)
	}
	sum, err := etrun.Get[float32](m, 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(scaled[:2], sum)
	// Output: [4 3] [2]
}

// An input keeps its value until it is set again. Set, Execute and Get allocate nothing.
func ExampleSet() {
	prog := must(etrun.Open("testdata/pte/two_conds.pte"))
	defer prog.Close()
	ctx := context.Background()
	m := must(prog.Load(ctx, "forward"))
	defer m.Close()
	_ = etrun.Set(m, 1, []bool{true}) // errors left out here
	_ = etrun.Set(m, 2, []float32{1, 2, 3})
	for _, first := range []bool{true, false} {
		_ = etrun.Set(m, 0, []bool{first})
		if err := m.Execute(ctx); err != nil {
			log.Fatal(err)
		}
		fmt.Println(must(etrun.Get[float32](m, 0)))
	}
	// Output:
	// [7 9 11]
	// [7 10.5 14]
}

// An input whose sizes vary takes any up to its bounds. Where more than one dimension may
// vary, sizes follow the elements.
func ExampleSet_dynamicSizes() {
	prog := must(etrun.Open("testdata/pte/dynamic_view.pte")) // [a, b] to [2a, b/2], plus 1
	defer prog.Close()
	ctx := context.Background()
	m := must(prog.Load(ctx, "forward"))
	defer m.Close()
	for _, sizes := range [][]int{{1, 4}, {2, 2}} {
		if err := etrun.Set(m, 0, []float32{1, 2, 3, 4}, sizes...); err != nil {
			log.Fatal(err)
		}
		if err := m.Execute(ctx); err != nil {
			log.Fatal(err)
		}
		fmt.Println(must(m.Output(0)).Tensor.Sizes, must(etrun.Get[float32](m, 0)))
	}
	err := etrun.Set(m, 0, make([]float32, 100), 10, 10)
	fmt.Println(err)
	// Output:
	// [2 2] [2 3 4 5]
	// [4 1] [2 3 4 5]
	// method "forward": input 0: got 100 elements, sizes [10 10], want float32 8x8 at most [InvalidArgument 0x12]
}

// Mutable buffers of a program, such as a cache, keep their values from one execute to
// the next. Reset makes the method as it was loaded.
func ExampleMethod_Reset() {
	prog := must(etrun.Open("testdata/pte/initial_state.pte"))
	defer prog.Close()
	ctx := context.Background()
	m := must(prog.Load(ctx, "forward"))
	defer m.Close()
	for range 2 {
		fmt.Println(must(etrun.Run[float32](ctx, m, []float32{1, 2, 3, 4})))
	}
	if err := m.Reset(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(must(etrun.Run[float32](ctx, m, []float32{1, 2, 3, 4})))
	// Output:
	// [2 6 10 14]
	// [4 10 16 22]
	// [2 6 10 14]
}

// Methods of one program share constants. Those that share state, too, are loaded with
// the state of the first one.
func ExampleWithStateOf() {
	prog := must(etrun.Open("testdata/pte/two_methods.pte"))
	defer prog.Close()
	fmt.Println(prog.MethodNames())
	ctx := context.Background()
	push := must(prog.Load(ctx, "push"))
	defer push.Close()
	read := must(prog.Load(ctx, "read", etrun.WithStateOf(push)))
	defer read.Close()
	fmt.Println(must(etrun.Run[float32](ctx, push, []float32{1, 2, 3, 4})))
	fmt.Println(must(etrun.Run[float32](ctx, read, []float32{1, 1, 1, 1})))
	// Output:
	// [push read]
	// [1 2 3 4]
	// [1 2 3 4]
}

// A pool serves many goroutines: each call gets an instance that is as it was loaded.
// Deadlines end the wait and the execute; a full queue sends callers away at once.
func ExamplePool() {
	prog := must(etrun.Open("testdata/pte/initial_state.pte"))
	defer prog.Close()
	pool := must(prog.NewPool("forward", 2, etrun.WithQueue(16)))
	defer pool.Close()
	if err := pool.Warm(context.Background(), nil); err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for range 2 {
		err := pool.Do(ctx, func(m *etrun.Method) error {
			sum, err := etrun.Run[float32](ctx, m, []float32{1, 2, 3, 4})
			fmt.Println(sum)
			return err
		})
		if err != nil {
			log.Fatal(err) // errors.Is(err, etrun.ErrBusy): the queue is full
		}
	}
	s := pool.Stats()
	fmt.Println(s.Calls, "calls of", s.Created, "instances")
	// Output:
	// [2 6 10 14]
	// [2 6 10 14]
	// 2 calls of 2 instances
}

// Bound memory saves the copies: the method reads and writes the caller's own.
func ExampleMethod_BindInput() {
	prog := must(etrun.Open("testdata/pte/initial_state.pte"))
	defer prog.Close()
	ctx := context.Background()
	m := must(prog.Load(ctx, "forward", etrun.WithBoundInputs(), etrun.WithBoundOutputs()))
	defer m.Close()
	meta := m.Meta()
	in, out := meta.Inputs[0].NewTensor(), meta.Outputs[0].NewTensor()
	if err := errors.Join(m.BindInput(0, in), m.BindOutput(0, out)); err != nil {
		log.Fatal(err)
	}
	x, sum := tensor.Data[float32](in), tensor.Data[float32](out)
	for range 2 {
		x[0]++
		if err := m.Execute(ctx); err != nil {
			log.Fatal(err)
		}
		fmt.Println(sum)
	}
	// Output:
	// [2 2 4 6]
	// [6 2 4 6]
}

//go:embed testdata/pte/external_weights.pte testdata/pte/external_weights.ptd
var model embed.FS

// A program and its external weights may be part of the binary. Sources are also files,
// bytes, and anything that has ReadAt.
func ExampleWithData() {
	ctx := context.Background()
	prog, err := etrun.OpenSource(ctx, etrun.FS(model, "testdata/pte/external_weights.pte"),
		etrun.WithData(etrun.FS(model, "testdata/pte/external_weights.ptd")))
	if err != nil {
		log.Fatal(err)
	}
	defer prog.Close()
	m := must(prog.Load(ctx, "forward"))
	defer m.Close()
	y := must(etrun.Run[float32](ctx, m, make([]float32, 8)))
	fmt.Printf("%.3f\n", y)
	// Output: [-0.443 -0.402 0.305 -0.443 -0.402 0.305]
}

// Errors are classes, which say what a caller can do, and types, which say the place.
func Example_errors() {
	_, err := etrun.Parse([]byte("not a program"))
	fmt.Println(errors.Is(err, etrun.ErrFormat))

	prog := must(etrun.Open("testdata/pte/external_weights.pte"))
	defer prog.Close()
	_, err = prog.Load(context.Background(), "forward")
	if missing, ok := errors.AsType[*etrun.MissingError](err); ok {
		fmt.Println("data:", missing.Data)
	}

	prog = must(etrun.Open("testdata/pte/two_conds.pte"))
	defer prog.Close()
	ctx, cancel := context.WithCancel(context.Background())
	m := must(prog.Load(ctx, "forward"))
	defer m.Close()
	_, err = etrun.Run[float32](ctx, m, []bool{true}, []bool{true}, []float32{1, 2})
	if in, ok := errors.AsType[*etrun.InputError](err); ok {
		fmt.Printf("input %d: got %s, want %s\n", in.Index, in.Got, in.Want)
	}
	cancel()
	_, err = etrun.Run[float32](ctx, m, []bool{true}, []bool{true}, []float32{1, 2, 3})
	fmt.Println(errors.Is(err, context.Canceled))
	// Output:
	// true
	// data: [l.weight l.bias]
	// input 2: got 2 elements, sizes [3], want float32 3
	// true
}

// A method that needs more memory than it may have is refused before anything is
// allocated, with what it needs.
func ExampleWithMaxMemory() {
	prog := must(etrun.Open("testdata/digits/portable.pte", etrun.WithMaxMemory(60_000)))
	defer prog.Close()
	_, err := prog.Load(context.Background(), "forward")
	if e, ok := errors.AsType[*etrun.MemoryError](err); ok {
		for _, part := range e.Parts {
			if part.Bytes > 0 {
				fmt.Println(part.Name, part.Bytes)
			}
		}
	}
	fmt.Println(errors.Is(err, etrun.ErrMemory))
	// Output:
	// file 49984
	// arenas 16640
	// folded constants 1280
	// true
}

// What was given but is of no use is said.
func ExampleProgram_Warnings() {
	prog := must(etrun.Open("testdata/pte/two_conds.pte", etrun.WithDataFiles("testdata/pte/external_weights.ptd")))
	defer prog.Close()
	for _, w := range prog.Warnings() {
		fmt.Println(w.Class+":", w.Text)
	}
	// Output: data: testdata/pte/external_weights.ptd: nothing in the program asks for this data
}
