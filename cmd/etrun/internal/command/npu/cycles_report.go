package npu

import (
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/etrun-go/etrun/cmd/etrun/internal/bytesize"
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/hal/ethosu/isa"
	"github.com/etrun-go/etrun/hal/ethosu/npu"
	"github.com/etrun-go/etrun/internal/duration"
)

// cyclesReport is the JSON object of npu cycles. All figures are estimates.
type cyclesReport struct {
	Schema    string           `json:"schema"`
	Model     string           `json:"model"`
	Delegates []delegateCycles `json:"delegates"`
}

type delegateCycles struct {
	Method     string      `json:"method"`
	Delegate   int         `json:"delegate"`
	NPU        string      `json:"npu"` // compile target
	MACs       int64       `json:"macs"`
	Cycles     float64     `json:"cycles"`      // of the whole stream
	Busy       float64     `json:"busy_cycles"` // of the MAC and output units
	Use        float64     `json:"mac_use"`     // fraction of the peak MACs
	Operations []opCycles  `json:"operations"`
	Kinds      []kindCosts `json:"kinds"`
}

// delegateSummary is a delegate without its individual operations.
type delegateSummary struct {
	Method     string      `json:"method"`
	Delegate   int         `json:"delegate"`
	NPU        string      `json:"npu"`
	Operations int         `json:"operations"`
	Cycles     float64     `json:"cycles"`
	Dominant   string      `json:"dominant"`
	Kinds      []kindCosts `json:"kinds"`
}

// dominant names the most frequent and the longest kind of operation.
func (d *delegateCycles) dominant() string {
	if len(d.Kinds) == 0 {
		return "no operations"
	}
	longest, most := &d.Kinds[0], &d.Kinds[0]
	for i := range d.Kinds {
		if d.Kinds[i].Count > most.Count {
			most = &d.Kinds[i]
		}
	}
	text := fmt.Sprintf("%d %s take %.0f %% of the cycles", longest.Count, longest.Name, 100*longest.Share)
	if longest.Count == 1 {
		text = fmt.Sprintf("1 %s takes %.0f %% of the cycles", longest.Name, 100*longest.Share)
	}
	if copies := d.copies(); copies > 0 {
		text += fmt.Sprintf("; layout copies are %d of %d operations", copies, len(d.Operations))
	} else if most != longest {
		text += fmt.Sprintf("; most operations, %d, are %s", most.Count, most.Name)
	}
	return text
}

// copies counts operations that only copy.
func (d *delegateCycles) copies() (n int) {
	for i := range d.Operations {
		if d.Operations[i].Copy {
			n++
		}
	}
	return n
}

type opCycles struct {
	Word   int              `json:"word"`
	Name   string           `json:"name"`
	Copy   bool             `json:"layout_copy,omitempty"`
	MACs   int64            `json:"macs"`
	NPU    int64            `json:"npu_cycles"`    // of the units
	Memory float64          `json:"memory_cycles"` // of the slowest memory
	Begin  float64          `json:"begin"`
	End    float64          `json:"end"`
	Read   map[string]int64 `json:"read_bytes,omitempty"` // by region
	Write  map[string]int64 `json:"write_bytes,omitempty"`
}

// kindCosts is the sum over the operations of one kind.
type kindCosts struct {
	Name   string  `json:"name"`
	Count  int     `json:"count"`
	MACs   int64   `json:"macs"`
	Cycles float64 `json:"cycles"`
	Share  float64 `json:"share"` // of the cycles of all operations
}

func byRegion(bytes [isa.NumRegions]int64) map[string]int64 {
	m := make(map[string]int64)
	for i, n := range bytes {
		if n > 0 {
			m[strconv.Itoa(i)] = n
		}
	}
	return m
}

// operationName is the name of an operation with its mode: "POOL MAX".
func operationName(c *npu.Cost) string {
	name := strings.TrimPrefix(c.Name, "NPU_OP_")
	if _, mode, ok := strings.Cut(c.Detail, "_mode="); ok {
		mode, _, _ = strings.Cut(mode, " ")
		name += " " + mode
	}
	if c.Copy {
		name += ", layout copy"
	}
	return name
}

// kindsOf sums operations by name, the longest first.
func kindsOf(costs []npu.Cost, t *npu.Timings) []kindCosts {
	index := make(map[string]int)
	list, sum := []kindCosts{}, 0.0
	for i := range costs {
		c := &costs[i]
		name := operationName(c)
		at, ok := index[name]
		if !ok {
			at = len(list)
			index[name] = at
			list = append(list, kindCosts{Name: name})
		}
		took := max(float64(c.Cycles), t.Wait(c))
		list[at].Count++
		list[at].MACs += c.MACs
		list[at].Cycles += took
		sum += took
	}
	for i := range list {
		if sum > 0 {
			list[i].Share = list[i].Cycles / sum
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].Cycles > list[j].Cycles })
	return list
}

func (d *delegateCycles) print(w io.Writer, clock float64) error {
	fmt.Fprintf(w, "method %s, delegate %d, %s: about %.0f cycles", cli.Printable(d.Method), d.Delegate, d.NPU, d.Cycles)
	if clock > 0 {
		fmt.Fprintf(w, ", %s at %g MHz", duration.FormatMS(d.Cycles/clock/1e3), clock)
	}
	fmt.Fprintf(w, "; %d MACs, %.1f %% of the peak\n", d.MACs, 100*d.Use)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "word\tcycles\tunits\tmemory\tMACs\tread\twritten\t  operation")
	for i := range d.Operations {
		o := &d.Operations[i]
		fmt.Fprintf(t, "%d\t%.0f\t%d\t%.0f\t%d\t%s\t%s\t  %s\n",
			o.Word, o.End-o.Begin, o.NPU, o.Memory, o.MACs, sumBytes(o.Read), sumBytes(o.Write), o.Name)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return printKinds(w, d.Kinds)
}

func sumBytes(m map[string]int64) string {
	n := int64(0)
	for _, v := range m {
		n += v
	}
	return bytesize.Format(n)
}

// printKinds writes the table of kinds.
func printKinds(w io.Writer, kinds []kindCosts) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "share\tcycles\tMACs\tcount\t  operations")
	for _, k := range kinds {
		fmt.Fprintf(t, "%.1f %%\t%.0f\t%d\t%d\t  %s\n", 100*k.Share, k.Cycles, k.MACs, k.Count, k.Name)
	}
	return t.Flush()
}
