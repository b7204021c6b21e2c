//go:build cgo

package main

// #define ETRUN_TYPES_ONLY // cgo declares the functions, without const
// #include "etrun.h"
import "C"

import (
	"context"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/text"
)

// kinds are the kinds of etrun_medium.
var kinds = map[C.int32_t]text.Medium{C.ETRUN_PICTURE: text.Picture, C.ETRUN_SOUND: text.Sound}

//export etrun_text_media
func etrun_text_media(handle C.etrun_text, media *C.etrun_medium, n C.size_t, message **C.char) C.int {
	return withText(handle, message, func(w *writer) error {
		list, err := listOf("media", media, n)
		if err != nil {
			return err
		}
		w.parts = nil
		var parts []*text.Part
		for i, m := range list {
			kind, ok := kinds[m.kind]
			if !ok || m.reserved != 0 {
				return argument("media[%d]: kind %d, reserved %d, want ETRUN_PICTURE or ETRUN_SOUND, and 0", i, int(m.kind), int(m.reserved))
			}
			file, err := bytesOf("file of a medium", m.file.data, m.file.bytes)
			if err != nil {
				return err
			}
			p, err := w.model.EncodePart(context.Background(), kind, slices.Clone(file))
			if err != nil {
				return err
			}
			parts = append(parts, p)
		}
		w.parts = parts
		return nil
	})
}

// places are what stands for media in messages.
var places = map[text.Medium]string{text.Picture: "<image>", text.Sound: "<audio>"}

// placeMedia puts the parts of the next text into the messages of the user: those with a place in a message there, the others into the last.
func (w *writer) placeMedia(messages []text.Message) error {
	left, last := slices.Clone(w.parts), -1
	for i := range messages {
		if messages[i].Role == "user" {
			last = i
		}
	}
	if last < 0 && len(left) > 0 {
		return argument("media, and no message of the user")
	}
	for i := 0; i <= last && len(left) > 0; i++ {
		m := &messages[i]
		if m.Role != "user" {
			continue
		}
		var own, others []*text.Part
		free := map[text.Medium]int{}
		for medium, place := range places {
			free[medium] = strings.Count(m.Content, place)
		}
		for _, p := range left {
			if free[p.Medium()]--; free[p.Medium()] >= 0 || i == last {
				own = append(own, p)
			} else {
				others = append(others, p)
			}
		}
		with := text.UserMessage(m.Content, own...)
		m.Content, m.Parts, left = with.Content, with.Parts, others
	}
	return nil
}
