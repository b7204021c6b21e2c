package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
)

// TestBriefHelp requires a help of at most 60 lines, or 40 without the list of commands, flags that exist, and each flag once among the topics.
func TestBriefHelp(t *testing.T) {
	for name, flags := range brief {
		c := newRoot(&app{})
		args, most := "", 40+len(cli.CommandNames(c))
		if name != "etrun" {
			args, most = name+" ", 60
			c, _, _ = c.Find([]string{name})
		}
		for _, f := range flags {
			if c.Flags().Lookup(f) == nil {
				t.Errorf("%s: no flag %s", name, f)
			}
		}
		short, all := printed(t, args+"--help"), printed(t, args+"--help-all")
		if n := strings.Count(short, "\n"); n > most || !strings.Contains(short, "--help-all") {
			t.Errorf("%s: a help of %d lines, want at most %d", name, n, most)
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if n := strings.Count(all, " --"+f.Name+" "); f.Usage != "" && n == 0 && !strings.Contains(all, " --"+f.Name+"\n") && !f.Hidden {
				t.Errorf("%s: no --%s in --help-all", name, f.Name)
			}
		})
	}
}

// TestTopics requires that each flag of the topics exists, once.
func TestTopics(t *testing.T) {
	shared := 0
	for name, list := range topics {
		c, _, _ := newRoot(&app{}).Find([]string{name})
		var seen []string
		for _, topic := range list {
			for _, f := range topic.flags {
				if c.Flags().Lookup(f) == nil || slices.Contains(seen, f) {
					t.Errorf("%s: %s: flag %s does not exist, or is there twice", name, topic.title, f)
				}
				seen = append(seen, f)
			}
		}
		for _, topic := range sharedTopics {
			for _, f := range topic.flags {
				if slices.Contains(seen, f) {
					t.Errorf("%s: flag %s is shared, too", name, f)
				}
				if c.Flags().Lookup(f) != nil {
					shared++
				}
			}
		}
	}
	if shared < 30 {
		t.Errorf("%d shared flags", shared)
	}
}
