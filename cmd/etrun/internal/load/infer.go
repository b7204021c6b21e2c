package load

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/serve/oip"
)

// Describe returns the metadata of a model, of a version unless that is empty.
func (c *Client) Describe(ctx context.Context, name, version string) (*Model, error) {
	if c.rpc {
		return c.describeRPC(ctx, name, version)
	}
	path := "/v2/models/" + url.PathEscape(name)
	if version != "" {
		path += "/versions/" + url.PathEscape(version)
	}
	m := &Model{}
	if err := c.Get(ctx, path, m); err != nil {
		return nil, err
	}
	m.path = path
	return m, nil
}

// Infer sends inferences of a model.
type Infer struct {
	client   *Client
	requests []*request
}

// NewInfer returns a sender of requests for a model, which are sent in turn: each has a value for each of the slots of the model.
// Tensors, also those of the answers, are binary data or JSON, and binary data with gRPC.
func (c *Client) NewInfer(m *Model, slots []etrun.ValueMeta, calls [][]tensor.Value, binary bool) (*Infer, error) {
	s := &Infer{client: c}
	for _, values := range calls {
		r := &oip.Request{}
		for i, v := range values {
			t, err := tensorOf(slots[i], v)
			if err != nil {
				return nil, fmt.Errorf("input %q: %w", slots[i].Name, err)
			}
			t.Binary = binary
			r.Inputs = append(r.Inputs, t)
		}
		q, err := c.prepare(m, r, binary)
		if err != nil {
			return nil, err
		}
		s.requests = append(s.requests, q)
	}
	return s, nil
}

// prepare returns a request as it is sent.
func (c *Client) prepare(m *Model, r *oip.Request, binary bool) (*request, error) {
	if c.rpc {
		body, err := messageOf(m, r.Inputs)
		return &request{body: body}, err
	}
	if binary {
		r.Parameters = oip.Parameters{"binary_data_output": true}
	}
	body, n, err := r.Append(nil)
	if err != nil {
		return nil, err
	}
	q := &request{method: http.MethodPost, path: m.path + "/infer", body: body}
	if n > 0 {
		q.headerLength = strconv.Itoa(n)
	}
	return q, nil
}

// Bytes is the size of the largest request.
func (s *Infer) Bytes() (n int) {
	for _, r := range s.requests {
		n = max(n, len(r.body))
	}
	return n
}

// Send implements [Sender].
func (s *Infer) Send(ctx context.Context, n int64) (Answer, error) {
	r := s.requests[n%int64(len(s.requests))]
	if s.client.rpc {
		return Answer{}, s.client.sendRPC(ctx, r.body)
	}
	return Answer{}, s.client.exchange(ctx, r, func(r io.Reader) error {
		read, err := io.Copy(io.Discard, io.LimitReader(r, maxAnswer+1))
		if err == nil && read > maxAnswer {
			err = &Failure{Bad, fmt.Errorf("more than %d bytes", maxAnswer)}
		}
		return err
	})
}

// tensorOf returns a value as an input of the protocol, in logical order.
func tensorOf(slot etrun.ValueMeta, v tensor.Value) (t oip.Tensor, err error) {
	t = oip.Tensor{Name: slot.Name, Shape: []int{1}}
	switch v.Kind {
	case tensor.KindString:
		t.Datatype, t.Texts = oip.Bytes, [][]byte{[]byte(v.Str)}
		return t, nil
	case tensor.KindTensor:
		name, ok := oip.DatatypeOf(v.Tensor.DType)
		if !ok {
			return t, fmt.Errorf("%v has no datatype in the protocol", v.Tensor.DType)
		}
		t.Datatype, t.Shape, t.Data = name, v.Tensor.Sizes, v.Tensor.Data
		return t, nil
	}
	return t, fmt.Errorf("%v, want a tensor, such as json:[5]", v.Kind)
}
