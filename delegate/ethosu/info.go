package ethosu

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/ethosu"
	"github.com/etrun-go/etrun/hal/ethosu/isa"
	"github.com/etrun-go/etrun/hal/ethosu/npu"
)

// CompiledFor returns the NPU configuration that a payload was compiled for. named looks up
// external blocks and may be nil. Errors are *delegate.Error.
func CompiledFor(payload []byte, named delegate.NamedData) (isa.Config, error) {
	p, err := Commands(payload, named)
	if err != nil {
		return isa.Config{}, err
	}
	return p.Config, nil
}

// Commands returns the command stream of a payload, sharing its bytes. named looks up external
// blocks and may be nil. Errors are *delegate.Error.
func Commands(payload []byte, named delegate.NamedData) (*isa.Payload, error) {
	c, err := parse(payload, named)
	if err != nil {
		return nil, err
	}
	p, err := isa.ParsePayload(c.commands)
	if err != nil {
		return nil, streamError(err)
	}
	return p, nil
}

// Needs returns the requirements, which are the same for every job.
func (im *image) Needs() delegate.Needs {
	return delegate.Needs{Inputs: len(im.container.inputs), Scratch: im.scratch, Profiling: int64(8 * im.program.Stream.Len())}
}

// Info describes the network and its device.
func (im *image) Info() delegate.Info {
	p := im.program
	info := delegate.Info{Engine: deviceName(im.device.Info()), Needs: im.Needs(), WeightBytes: int64(len(im.container.weights))}
	count := map[string]int{}
	for _, op := range p.Stream.Operations() {
		name := strings.TrimPrefix(op.Name, "NPU_OP_")
		info.Nodes = append(info.Nodes, delegate.Node{Name: name, Detail: strings.TrimSpace(op.Detail), Attributes: attributes(&op)})
		count[strings.TrimSpace(name+" "+mode(op.Detail))]++
	}
	info.Facts = [][2]string{
		{"compiled for", p.Config.String()},
		{"command stream", fmt.Sprintf("%d words (%s)", len(p.Commands)/4, p.Payload[:4])},
		{"operations", histogram(count)},
	}
	for i := range p.Regions {
		if r := &p.Regions[i]; r.Size > 0 {
			info.Facts = append(info.Facts, [2]string{fmt.Sprintf("region %d", i), fmt.Sprintf("%v, %d bytes", r.Kind, r.Size)})
		}
	}
	for i := range im.outputs {
		if q := im.outputs[i].quant; q != nil {
			info.Facts = append(info.Facts, [2]string{fmt.Sprintf("output %d", i),
				fmt.Sprintf("quantized with scale %v and zero point %d (from %s)", q.Scale, q.ZeroPoint, q.By)})
			as := *q
			as.DType = written(im.container.outputs[i].elemSize)
			info.Conversions = append(info.Conversions, delegate.Conversion{Output: i, QuantUse: as})
		}
	}
	return info
}

// attributes returns the fields of a command, and what the registers say about its operands: "stride 1x1".
func attributes(op *npu.Operation) (list []delegate.Attribute) {
	parts := strings.Fields(strings.ReplaceAll(op.Detail, "=", "\x00"))
	for _, line := range op.Maps {
		if strings.HasPrefix(line, "kernel ") {
			parts = append(parts, strings.Split(line, ", ")...)
		} else {
			parts = append(parts, line)
		}
	}
	for _, part := range parts {
		if at := strings.IndexAny(part, "\x00 "); at > 0 {
			list = append(list, delegate.Attribute{Name: part[:at], Value: strings.TrimSpace(part[at+1:])})
		}
	}
	return list
}

func deviceName(i ethosu.Info) string {
	switch {
	case i.Driver == "npu":
		return "software NPU"
	case i.Path != "":
		return i.Driver + " " + i.Path
	}
	return i.Driver
}

// mode returns the value of an operation's first field if it is a name.
func mode(detail string) string {
	_, value, _ := strings.Cut(strings.TrimSpace(detail), "=")
	value, _, _ = strings.Cut(value, " ")
	if _, err := strconv.Atoi(value); err == nil {
		return ""
	}
	return value
}

// histogram formats counts, largest first.
func histogram(count map[string]int) string {
	names := make([]string, 0, len(count))
	for n := range count {
		names = append(names, n)
	}
	sort.Slice(names, func(i, j int) bool {
		if count[names[i]] != count[names[j]] {
			return count[names[i]] > count[names[j]]
		}
		return names[i] < names[j]
	})
	for i, n := range names {
		names[i] = fmt.Sprintf("%d %s", count[n], n)
	}
	return strings.Join(names, ", ")
}
