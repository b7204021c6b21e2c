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

// must handles the errors that an example does not explain.
func must[T any](x T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return x
}

// Open a program, load a method, run it. A program needs a backend for each of its delegates:
// package all provides those of this build.
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

// digit returns a test image of 8 by 8 pixels.
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

// Meta describes the inputs and outputs of a method without loading it.
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

// Run accepts slices, tensors, numbers, bools and strings, and returns output 0. Get returns the
// other outputs.
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

// An input keeps its value until it is set again. Set, Execute and Get do not allocate.
func ExampleSet() {
	prog := must(etrun.Open("testdata/pte/two_conds.pte"))
	defer prog.Close()
	ctx := context.Background()
	m := must(prog.Load(ctx, "forward"))
	defer m.Close()
	_ = etrun.Set(m, 1, []bool{true}) // error handling omitted
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

// A dynamic input accepts sizes up to its bounds. If more than one dimension varies, pass the sizes
// after the elements.
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
	// method "forward": input 0: got 100 elements, sizes 10x10, want float32 8x8 at most [InvalidArgument 0x12]
}

// Mutable buffers of a program, such as a cache, keep their values between runs. Reset returns the
// method to its state after Load.
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

// Methods of one program share constants. WithStateOf makes them share mutable state, too.
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

// A pool serves many goroutines: each call gets an instance in its initial state. Deadlines end the
// wait and the run; if the queue is full, Do returns immediately.
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

// Bound inputs and outputs avoid copies: the method reads and writes the caller's memory.
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

// A program and its external weights can be embedded in the binary. Other sources are files, byte
// slices, and any io.ReaderAt.
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

// Error classes tell callers how to react; error types locate the failure.
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
	// input 2: got 2 elements, sizes 3, want float32 3
	// true
}

// Load fails, before it allocates, if the method needs more memory than the limit. The error lists
// the components.
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

// Warnings lists backends and data that the program does not use.
func ExampleProgram_Warnings() {
	prog := must(etrun.Open("testdata/pte/two_conds.pte", etrun.WithDataFiles("testdata/pte/external_weights.ptd")))
	defer prog.Close()
	for _, w := range prog.Warnings() {
		fmt.Println(w.Class+":", w.Text)
	}
	// Output: data: testdata/pte/external_weights.ptd: the program does not use this data
}
