package trace

import (
	"io"

	flatbuffers "github.com/google/flatbuffers/go"
)

// etNames are the names in ExecuTorch's Inspector of events that are not operators.
var etNames = map[Kind]string{
	Execute: "Method::execute", Delegate: "DELEGATE_CALL", Move: "MOVE_CALL", Jump: "JF_CALL", Free: "FREE_CALL",
}

// inETDump are the kinds that an ETDump contains.
const inETDump = Instructions | Nodes | 1<<Execute

// WriteETDump writes the events of runs as an ETDump (etdump_schema_flatcc.fbs, identifier ED00,
// size-prefixed): one RunData "Execute" per run, times in nanoseconds.
func (r *Recorder) WriteETDump(w io.Writer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.write(w, func(*flatbuffers.Builder, int64) ([]flatbuffers.UOffsetT, int) { return nil, -1 })
}

// write writes the ETDump. more returns further events of a run, and its bundled_input_index.
func (r *Recorder) write(w io.Writer, more func(b *flatbuffers.Builder, run int64) (events []flatbuffers.UOffsetT, bundled int)) error {
	b := flatbuffers.NewBuilder(1024)
	var runs []flatbuffers.UOffsetT
	for _, events := range r.byRun() {
		debug, bundled := more(b, events[0].Run)
		runs = append(runs, runData(b, events, debug, bundled))
	}
	list := vector(b, runs)
	b.StartObject(2) // ETDump
	b.PrependUint32Slot(0, 0, 1)
	b.PrependUOffsetTSlot(1, list, 0)
	b.FinishSizePrefixedWithFileIdentifier(b.EndObject(), []byte("ED00"))
	_, err := w.Write(b.FinishedBytes())
	return err
}

// byRun groups the events by run; runs may have been concurrent.
func (r *Recorder) byRun() (groups [][]*Event) {
	index := make(map[int64]int)
	for i := range r.Events {
		e := &r.Events[i]
		if !inETDump.Has(e.Kind) {
			continue
		}
		at, ok := index[e.Run]
		if !ok {
			at = len(groups)
			index[e.Run] = at
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], e)
	}
	return groups
}

func runData(b *flatbuffers.Builder, events []*Event, debug []flatbuffers.UOffsetT, bundled int) flatbuffers.UOffsetT {
	var list []flatbuffers.UOffsetT
	for _, e := range events {
		if e.Kind == Operator { // the Inspector expects the kernel's time, then that of the enclosing call
			list = append(list, profileEvent(b, e, "native_call_"+e.Name), profileEvent(b, e, "OPERATOR_CALL"))
			continue
		}
		name, ok := etNames[e.Kind]
		if !ok {
			name = e.Name
		}
		list = append(list, profileEvent(b, e, name))
	}
	name := b.CreateString("Execute")
	vec := vector(b, append(list, debug...))
	b.StartObject(4) // RunData
	b.PrependUOffsetTSlot(0, name, 0)
	b.PrependInt32Slot(1, int32(bundled), -1)
	b.PrependUOffsetTSlot(3, vec, 0)
	return b.EndObject()
}

// profileEvent writes an Event table that contains a ProfileEvent.
func profileEvent(b *flatbuffers.Builder, e *Event, name string) flatbuffers.UOffsetT {
	text := b.CreateSharedString(name)
	b.StartObject(8) // ProfileEvent
	b.PrependUOffsetTSlot(0, text, 0)
	b.PrependInt32Slot(1, int32(e.Chain), 0)
	b.PrependInt32Slot(2, int32(max(e.Instruction, 0)), -1)
	b.PrependInt32Slot(3, int32(e.Index), -1) // delegate_debug_id_int
	b.PrependUint64Slot(6, uint64(e.Start), 0)
	b.PrependUint64Slot(7, uint64(e.End), 0)
	profile := b.EndObject()
	b.StartObject(3) // Event
	b.PrependUOffsetTSlot(0, profile, 0)
	return b.EndObject()
}

func vector(b *flatbuffers.Builder, items []flatbuffers.UOffsetT) flatbuffers.UOffsetT {
	b.StartVector(flatbuffers.SizeUOffsetT, len(items), flatbuffers.SizeUOffsetT)
	for i := len(items) - 1; i >= 0; i-- {
		b.PrependUOffsetT(items[i])
	}
	return b.EndVector(len(items))
}
