package grpc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/internal/await"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/grpc"
	"github.com/etrun-go/etrun/serve/grpc/inference"
	"github.com/etrun-go/etrun/serve/oip"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// program returns a function that opens a file of testdata.
func program(path string) func(context.Context) (*etrun.Program, error) {
	return func(ctx context.Context) (*etrun.Program, error) {
		return etrun.OpenSource(ctx, etrun.File("../../testdata/"+path), etrun.WithDelegates(all.Backends()...), etrun.WithThreads(1))
	}
}

// peer is a server of gRPC, the same models over HTTP, and a client of Google's library.
type peer struct {
	models *serve.Server
	url    string
	client *rpc.ClientConn
	raw    *http.Client
}

// start serves models until the test ends.
func start(t *testing.T, o serve.Options, g grpc.Options, models ...serve.Config) *peer {
	t.Helper()
	s, err := serve.New(o, models...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.LoadAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	h := httptest.NewUnstartedServer(grpc.New(s, g))
	h.Config.Protocols = protocols
	h.Start()
	t.Cleanup(h.Close)
	client, err := rpc.NewClient("passthrough:///"+h.Listener.Addr().String(), rpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{Protocols: protocols}
	t.Cleanup(func() { client.Close(); transport.CloseIdleConnections() })
	return &peer{s, h.URL, client, &http.Client{Transport: transport}}
}

const service = "/inference.GRPCInferenceService/"

// call calls a procedure.
func call[Res any](t *testing.T, p *peer, name string, request any) (*Res, error) {
	t.Helper()
	answer := new(Res)
	return answer, p.client.Invoke(t.Context(), service+name, request, answer)
}

// digits returns an image of a digit.
func digit(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("../../testdata/digits/images.f32.bin")
	if err != nil {
		t.Fatal(err)
	}
	return data[:256]
}

func config(name, path string) serve.Config { return serve.Config{Name: name, Open: program(path)} }

// imageRequest is a request to model digits.
func imageRequest(t testing.TB) *inference.ModelInferRequest {
	return &inference.ModelInferRequest{ModelName: "digits", Id: "a 1",
		Inputs:           []*inference.ModelInferRequest_InferInputTensor{{Name: "input_0", Datatype: "FP32", Shape: []int64{1, 1, 8, 8}}},
		RawInputContents: [][]byte{digit(t)}}
}

// overHTTP returns the outputs of the same request.
func (p *peer) overHTTP(t *testing.T, path string, inputs []oip.Tensor, outputs []oip.Output) *oip.Response {
	t.Helper()
	body, n, err := (&oip.Request{Inputs: inputs, Outputs: outputs, Parameters: oip.Parameters{"binary_data_output": true}}).Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("POST", path, bytes.NewReader(body))
	if n > 0 {
		r.Header.Set(oip.HeaderLength, jsonText(t, n))
	}
	w := httptest.NewRecorder()
	p.models.ServeHTTP(w, r)
	limits := oip.Limits{Header: 1 << 20, Body: 1 << 26, Tensors: 1 << 26, Inputs: 64}
	answer, err := oip.ReadResponse(bytes.NewReader(w.Body.Bytes()), w.Header().Get(oip.HeaderLength), limits)
	if err != nil || w.Code != http.StatusOK {
		t.Fatal(w.Code, err, w.Body)
	}
	return answer
}

func jsonText(t *testing.T, v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// compare checks an answer against that over HTTP.
func compare(t *testing.T, got *inference.ModelInferResponse, want *oip.Response) {
	t.Helper()
	if got.ModelName != want.Model || got.ModelVersion != want.Version || len(got.Outputs) != len(want.Outputs) ||
		len(got.RawOutputContents) != len(want.Outputs) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i := range want.Outputs {
		o, w := got.Outputs[i], &want.Outputs[i]
		shape := make([]int64, len(w.Shape))
		for i, n := range w.Shape {
			shape[i] = int64(n)
		}
		if o.Name != w.Name || o.Datatype != string(w.Datatype) || !slices.Equal(o.Shape, shape) {
			t.Errorf("output %v, want %v", o, w)
		}
		if !bytes.Equal(got.RawOutputContents[i], w.AppendData(nil)) {
			t.Errorf("output %s: other bits than over HTTP", o.Name)
		}
	}
}

// TestInfer compares answers with those over HTTP: for raw and typed contents, selected outputs and classes.
func TestInfer(t *testing.T) {
	p := start(t, serve.Options{}, grpc.Options{}, config("digits", "digits/portable.pte"), config("pair", "pte/dynamic_pair.pte"))
	in := []oip.Tensor{{Name: "input_0", Datatype: "FP32", Shape: []int{1, 1, 8, 8}, Data: digit(t), Binary: true}}
	want := p.overHTTP(t, "/v2/models/digits/infer", in, nil)
	typed := imageRequest(t)
	typed.RawInputContents = nil
	typed.Inputs[0].Contents = &inference.InferTensorContents{Fp32Contents: tensor.View[float32](tensor.BytesOf(floats(digit(t))))}
	for name, r := range map[string]*inference.ModelInferRequest{"raw": imageRequest(t), "typed": typed} {
		got, err := call[inference.ModelInferResponse](t, p, "ModelInfer", r)
		if err != nil || got.Id != r.Id {
			t.Fatal(name, err, got)
		}
		compare(t, got, want)
	}
	r := imageRequest(t)
	three := &inference.InferParameter{ParameterChoice: &inference.InferParameter_Int64Param{Int64Param: 3}}
	r.Outputs = []*inference.ModelInferRequest_InferRequestedOutputTensor{{Name: "output_0",
		Parameters: map[string]*inference.InferParameter{"classification": three}}}
	got, err := call[inference.ModelInferResponse](t, p, "ModelInfer", r)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, got, p.overHTTP(t, "/v2/models/digits/infer", in, []oip.Output{{Name: "output_0", Parameters: oip.Parameters{"classification": int64(3)}}}))
}

func floats(data []byte) []float32 {
	aligned := tensor.AlignedBytes(len(data))
	copy(aligned, data)
	return tensor.View[float32](aligned)
}

// TestOrder checks that several inputs and outputs are in the order of the request.
func TestOrder(t *testing.T) {
	p := start(t, serve.Options{}, grpc.Options{}, config("pair", "pte/dynamic_pair.pte"))
	about, err := p.models.ModelMetadata(t.Context(), "pair", "")
	if err != nil || len(about.Inputs) < 2 {
		t.Fatal(err, about)
	}
	var in []oip.Tensor
	r := &inference.ModelInferRequest{ModelName: "pair", ModelVersion: "forward"}
	for k := range about.Inputs {
		m := &about.Inputs[len(about.Inputs)-1-k]
		shape := slices.Clone(m.Shape)
		wide := make([]int64, len(shape))
		for i := range shape {
			if shape[i] < 0 {
				shape[i] = m.MaxShape[i]
			}
			wide[i] = int64(shape[i])
		}
		n, _ := tensor.Product(shape)
		data := tensor.BytesOf(slices.Repeat([]float32{float32(k) + 0.5}, n))
		in = append(in, oip.Tensor{Name: m.Name, Datatype: m.Datatype, Shape: shape, Data: data, Binary: true})
		r.Inputs = append(r.Inputs, &inference.ModelInferRequest_InferInputTensor{Name: m.Name, Datatype: string(m.Datatype), Shape: wide})
		r.RawInputContents = append(r.RawInputContents, data)
	}
	var outputs []oip.Output
	for _, o := range slices.Backward(about.Outputs) {
		outputs = append(outputs, oip.Output{Name: o.Name})
		r.Outputs = append(r.Outputs, &inference.ModelInferRequest_InferRequestedOutputTensor{Name: o.Name})
	}
	got, err := call[inference.ModelInferResponse](t, p, "ModelInfer", r)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, got, p.overHTTP(t, "/v2/models/pair/infer", in, outputs))
}

// TestRefusals checks the codes of requests that fail.
func TestRefusals(t *testing.T) {
	p := start(t, serve.Options{BodyBytes: 1 << 20}, grpc.Options{}, config("digits", "digits/portable.pte"))
	for name, c := range map[string]struct {
		change func(r *inference.ModelInferRequest)
		want   codes.Code
	}{
		"no model":         {func(r *inference.ModelInferRequest) { r.ModelName = "" }, codes.InvalidArgument},
		"unknown model":    {func(r *inference.ModelInferRequest) { r.ModelName = "none" }, codes.NotFound},
		"unknown method":   {func(r *inference.ModelInferRequest) { r.ModelVersion = "none" }, codes.NotFound},
		"unknown input":    {func(r *inference.ModelInferRequest) { r.Inputs[0].Name = "none" }, codes.InvalidArgument},
		"no input":         {func(r *inference.ModelInferRequest) { r.Inputs, r.RawInputContents = nil, nil }, codes.InvalidArgument},
		"unknown datatype": {func(r *inference.ModelInferRequest) { r.Inputs[0].Datatype = "FP8" }, codes.InvalidArgument},
		"other datatype":   {func(r *inference.ModelInferRequest) { r.Inputs[0].Datatype = "INT32" }, codes.InvalidArgument},
		"other shape":      {func(r *inference.ModelInferRequest) { r.Inputs[0].Shape = []int64{64} }, codes.InvalidArgument},
		"negative shape":   {func(r *inference.ModelInferRequest) { r.Inputs[0].Shape = []int64{-1} }, codes.InvalidArgument},
		"huge shape":       {func(r *inference.ModelInferRequest) { r.Inputs[0].Shape = []int64{1 << 40, 1 << 40} }, codes.InvalidArgument},
		"many dimensions":  {func(r *inference.ModelInferRequest) { r.Inputs[0].Shape = make([]int64, 1000) }, codes.InvalidArgument},
		"short contents":   {func(r *inference.ModelInferRequest) { r.RawInputContents[0] = r.RawInputContents[0][:255] }, codes.InvalidArgument},
		"two contents":     {func(r *inference.ModelInferRequest) { r.RawInputContents = append(r.RawInputContents, nil) }, codes.InvalidArgument},
		"both contents": {func(r *inference.ModelInferRequest) {
			r.Inputs[0].Contents = &inference.InferTensorContents{Fp32Contents: []float32{1}}
		}, codes.InvalidArgument},
		"other contents": {func(r *inference.ModelInferRequest) {
			r.RawInputContents, r.Inputs[0].Contents = nil, &inference.InferTensorContents{IntContents: make([]int32, 64)}
		}, codes.InvalidArgument},
		"half contents": {func(r *inference.ModelInferRequest) {
			r.RawInputContents, r.Inputs[0].Datatype = nil, "FP16"
		}, codes.InvalidArgument},
		"many inputs": {func(r *inference.ModelInferRequest) {
			r.Inputs = slices.Repeat([]*inference.ModelInferRequest_InferInputTensor{{}}, 10000)
		}, codes.ResourceExhausted},
		"long id":              {func(r *inference.ModelInferRequest) { r.Id = string(make([]byte, 5000)) }, codes.ResourceExhausted},
		"shared memory":        {func(r *inference.ModelInferRequest) { r.Inputs[0].Parameters = parameter("shared_memory_region", "x") }, codes.InvalidArgument},
		"wrong timeout":        {func(r *inference.ModelInferRequest) { r.Parameters = parameter("timeout", "x") }, codes.InvalidArgument},
		"large for the model":  {func(r *inference.ModelInferRequest) { r.RawInputContents[0] = make([]byte, 200<<10) }, codes.ResourceExhausted},
		"large for the server": {func(r *inference.ModelInferRequest) { r.RawInputContents[0] = make([]byte, 2<<20) }, codes.ResourceExhausted},
	} {
		r := imageRequest(t)
		c.change(r)
		if _, err := call[inference.ModelInferResponse](t, p, "ModelInfer", r); status.Code(err) != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	strange := imageRequest(t)
	strange.ModelName = "ü%20\n"
	if _, err := call[inference.ModelInferResponse](t, p, "ModelInfer", strange); !strings.Contains(status.Convert(err).Message(), `"ü%20\n"`) {
		t.Errorf("the name of a model: %v", err)
	}
	if _, err := call[inference.ModelInferResponse](t, p, "SystemSharedMemoryStatus", imageRequest(t)); status.Code(err) != codes.Unimplemented {
		t.Errorf("unknown procedure: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	err := p.client.Invoke(ctx, service+"ModelInfer", imageRequest(t), new(inference.ModelInferResponse))
	if status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("deadline: %v", err)
	}
}

// TestUnknownDatatype checks that the error names the datatype, not the field of the contents.
func TestUnknownDatatype(t *testing.T) {
	p := start(t, serve.Options{}, grpc.Options{}, config("digits", "digits/portable.pte"))
	for _, datatype := range []string{"FLOAT", ""} {
		r := imageRequest(t)
		r.RawInputContents, r.Inputs[0].Datatype = nil, datatype
		r.Inputs[0].Contents = &inference.InferTensorContents{Fp32Contents: make([]float32, 64)}
		_, err := call[inference.ModelInferResponse](t, p, "ModelInfer", r)
		if want := fmt.Sprintf("inputs[0]: unknown datatype %q", datatype); status.Convert(err).Message() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestBusyBytes checks what requests count: an answer only its bytes, and a message of a stream nothing after the answer. A message that
// is larger than all requests may be is refused for good. No stream ends by its time limit.
func TestBusyBytes(t *testing.T) {
	message := int64(proto.Size(imageRequest(t)))
	// An output and its bytes in the answer; as JSON it would take twice as many.
	const answer = 10 * (4 + 4)
	options := serve.Options{BusyBytes: 2*message + answer, BodyTimeout: time.Hour}
	p := start(t, options, grpc.Options{}, config("digits", "digits/portable.pte"))
	if _, err := call[inference.ModelInferResponse](t, p, "ModelInfer", imageRequest(t)); err != nil {
		t.Error("one request:", err)
	}
	stream, err := p.client.NewStream(t.Context(), &rpc.StreamDesc{ClientStreams: true, ServerStreams: true}, service+"ModelStreamInfer")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(stream.SendMsg(imageRequest(t)), stream.RecvMsg(new(inference.ModelStreamInferResponse))); err != nil {
		t.Fatal(err)
	}
	await.True(t, "a request while a stream waits for its next message", func() bool {
		_, err = call[inference.ModelInferResponse](t, p, "ModelInfer", imageRequest(t))
		return err == nil
	})
	large := imageRequest(t)
	large.RawInputContents[0] = make([]byte, 2*message)
	_, err = call[inference.ModelInferResponse](t, p, "ModelInfer", large)
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), fmt.Sprintf("at most %d are accepted: half of the %d ", options.BusyBytes/2, options.BusyBytes)) {
		t.Error("a large request:", err)
	}
}

func parameter(name, text string) map[string]*inference.InferParameter {
	return map[string]*inference.InferParameter{name: {ParameterChoice: &inference.InferParameter_StringParam{StringParam: text}}}
}

// TestStream checks that a stream answers in order, after errors too, and ends with its client or with the server.
func TestStream(t *testing.T) {
	stop, end := context.WithCancel(t.Context())
	p := start(t, serve.Options{}, grpc.Options{Stop: stop}, config("digits", "digits/portable.pte"))
	want, err := call[inference.ModelInferResponse](t, p, "ModelInfer", imageRequest(t))
	if err != nil {
		t.Fatal(err)
	}
	open := func() rpc.ClientStream {
		stream, err := p.client.NewStream(t.Context(), &rpc.StreamDesc{ClientStreams: true, ServerStreams: true}, service+"ModelStreamInfer")
		if err != nil {
			t.Fatal(err)
		}
		return stream
	}
	stream := open()
	for i := range 20 {
		r := imageRequest(t)
		if r.Id = string(rune('a' + i)); i%3 == 1 {
			r.Inputs[0].Name = "none"
		}
		if err := stream.SendMsg(r); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		var got inference.ModelStreamInferResponse
		if err := stream.RecvMsg(&got); err != nil || got.InferResponse.GetId() != string(rune('a'+i)) || (got.ErrorMessage != "") != (i%3 == 1) {
			t.Fatal(i, err, got.ErrorMessage, got.InferResponse.GetId())
		}
		if i%3 != 1 && !bytes.Equal(got.InferResponse.RawOutputContents[0], want.RawOutputContents[0]) {
			t.Errorf("answer %d differs", i)
		}
	}
	if err := errors.Join(stream.CloseSend(), stream.RecvMsg(new(inference.ModelStreamInferResponse))); !errors.Is(err, io.EOF) {
		t.Errorf("end of the stream: %v", err)
	}
	stream = open()
	if err := errors.Join(stream.SendMsg(imageRequest(t)), stream.RecvMsg(new(inference.ModelStreamInferResponse))); err != nil {
		t.Fatal(err)
	}
	end()
	if err := stream.RecvMsg(new(inference.ModelStreamInferResponse)); status.Code(err) != codes.Unavailable {
		t.Errorf("end of the server: %v", err)
	}
}

// TestReflection: clients without the definition list the services, and read their descriptors.
func TestReflection(t *testing.T) {
	stop, end := context.WithCancel(t.Context())
	p := start(t, serve.Options{}, grpc.Options{Stop: stop}, config("digits", "digits/portable.pte"))
	stream, err := reflectionpb.NewServerReflectionClient(p.client).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(r *reflectionpb.ServerReflectionRequest) *reflectionpb.ServerReflectionResponse {
		if err := stream.Send(r); err != nil {
			t.Fatal(err)
		}
		answer, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	var services []string
	for _, s := range ask(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}).
		GetListServicesResponse().Service {
		services = append(services, s.Name)
	}
	if len(services) != 4 {
		t.Errorf("services %q", services)
	}
	for _, name := range append(services, "inference.ModelInferRequest", "none.at.all") {
		files := ask(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{
			FileContainingSymbol: name}}).GetFileDescriptorResponse().GetFileDescriptorProto()
		if (len(files) > 0) != (name != "none.at.all") {
			t.Errorf("%s: %d files", name, len(files))
		}
	}
	end()
	if _, err := stream.Recv(); err == nil {
		t.Error("the stream of a server that stops goes on")
	}
}

// TestDescriptions checks what the server says of itself and of models, and loads by requests.
func TestDescriptions(t *testing.T) {
	p := start(t, serve.Options{Version: "1.2", Control: true}, grpc.Options{}, config("digits", "digits/portable.pte"))
	if _, err := call[inference.ModelInferResponse](t, p, "ModelInfer", imageRequest(t)); err != nil {
		t.Fatal(err)
	}
	checks := healthpb.NewHealthClient(p.client)
	for name, want := range map[string]string{"": "SERVING", "inference.GRPCInferenceService": "SERVING",
		"grpc.health.v1.Health": "SERVING", "digits": "SERVING", "none": ""} {
		answer, err := checks.Check(t.Context(), &healthpb.HealthCheckRequest{Service: name})
		if want == "" && status.Code(err) != codes.NotFound || want != "" && answer.GetStatus().String() != want {
			t.Errorf("health of %q: %v, %v", name, answer, err)
		}
	}
	live, err1 := call[inference.ServerLiveResponse](t, p, "ServerLive", &inference.ServerLiveRequest{})
	ready, err2 := call[inference.ServerReadyResponse](t, p, "ServerReady", &inference.ServerReadyRequest{})
	server, err3 := call[inference.ServerMetadataResponse](t, p, "ServerMetadata", &inference.ServerMetadataRequest{})
	about, err4 := call[inference.ModelMetadataResponse](t, p, "ModelMetadata", &inference.ModelMetadataRequest{Name: "digits"})
	c, err5 := call[inference.ModelConfigResponse](t, p, "ModelConfig", &inference.ModelConfigRequest{Name: "digits", Version: "forward"})
	stats, err6 := call[inference.ModelStatisticsResponse](t, p, "ModelStatistics", &inference.ModelStatisticsRequest{})
	index, err7 := call[inference.RepositoryIndexResponse](t, p, "RepositoryIndex", &inference.RepositoryIndexRequest{})
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7); err != nil {
		t.Fatal(err)
	}
	in := about.Inputs[0]
	switch {
	case !live.Live, !ready.Ready, server.Name != "etrun", server.Version != "1.2", !slices.Contains(server.Extensions, "model_repository"):
		t.Error(live, ready, server)
	case about.Name != "digits", !slices.Equal(about.Versions, []string{"forward"}), in.Name != "input_0", in.Datatype != "FP32", len(in.Shape) != 4:
		t.Error(about)
	case c.Config.Input[0].DataType != inference.DataType_TYPE_FP32, c.Config.Backend != "executorch", c.Config.InstanceGroup[0].Count != 2:
		t.Error(c)
	case stats.ModelStats[0].InferenceCount != 1, stats.ModelStats[0].InferenceStats.Success.Count != 1, stats.ModelStats[0].InferenceStats.Success.Ns == 0:
		t.Error(stats)
	case len(index.Models) != 1 || index.Models[0].State != "READY":
		t.Error(index)
	}
	isReady := func() bool {
		r, err := call[inference.ModelReadyResponse](t, p, "ModelReady", &inference.ModelReadyRequest{Name: "digits"})
		return err == nil && r.Ready
	}
	unload := &inference.RepositoryModelUnloadRequest{ModelName: "digits", Parameters: map[string]*inference.ModelRepositoryParameter{
		"unload_dependents": {ParameterChoice: &inference.ModelRepositoryParameter_BoolParam{BoolParam: true}}}}
	if _, err := call[inference.RepositoryModelUnloadResponse](t, p, "RepositoryModelUnload", unload); err != nil || isReady() {
		t.Error("unload", err)
	}
	load := &inference.RepositoryModelLoadRequest{ModelName: "digits"}
	if _, err := call[inference.RepositoryModelLoadResponse](t, p, "RepositoryModelLoad", load); err != nil || !isReady() {
		t.Error("load", err)
	}
	load.Parameters = unload.Parameters
	if _, err := call[inference.RepositoryModelLoadResponse](t, p, "RepositoryModelLoad", load); status.Code(err) != codes.InvalidArgument {
		t.Error("load with parameters", err)
	}
	if _, err := call[inference.ModelReadyResponse](t, p, "ModelReady", &inference.ModelReadyRequest{Name: "none"}); status.Code(err) != codes.NotFound {
		t.Error("unknown model", err)
	}
}
