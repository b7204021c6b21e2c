package main

import (
	"bytes"
	"testing"
	"time"
)

func TestPythonVersion(t *testing.T) {
	for release, want := range map[string]string{
		"v0.1.0": "0.1.0", "v1.2": "1.2", "v0.1.0-5-g12ab34c": "0.1.0.post5+g12ab34c", "v0.1.0-dirty": "0.1.0+dirty",
		"v0.1.0-5-g12ab34c-dirty": "0.1.0.post5+g12ab34c.dirty", "12ab34c": "0+12ab34c", "12ab34c-dirty": "0+12ab34c.dirty",
		"": "0", "unknown": "0+unknown", "v0.2.0-rc.1": "0+v0.2.0.rc.1",
	} {
		if got := pythonVersion(release); got != want {
			t.Errorf("%q: got %q, want %q", release, got, want)
		}
	}
}

func TestPlatform(t *testing.T) {
	for _, c := range []struct {
		needs
		want string
	}{
		{needs{"x86_64", []string{"libc.so.6"}, [2]int{2, 34}}, "manylinux_2_34_x86_64"},
		{needs{"aarch64", []string{"libc.so.6", "ld-linux-aarch64.so.1"}, [2]int{2, 4}}, "manylinux_2_17_aarch64"},
		{needs{"x86_64", []string{"libc.so.6", "libXNNPACK.so.0"}, [2]int{2, 34}}, "linux_x86_64"},
		{needs{"x86_64", nil, [2]int{}}, "linux_x86_64"},
	} {
		if got := c.platform(); got != c.want {
			t.Errorf("%v: got %s, want %s", c.needs, got, c.want)
		}
	}
	for text, want := range map[string][2]int{"2.34": {2, 34}, "2.2.5": {2, 2}} {
		if got, err := glibcVersion(text); got != want || err != nil {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	if _, err := glibcVersion("PRIVATE"); err == nil {
		t.Error("PRIVATE is a version")
	}
}

func TestPack(t *testing.T) {
	files := map[string][]byte{"b": []byte("2"), "a": []byte("1"), "c/d": bytes.Repeat([]byte("x"), 1000)}
	one, err := pack(files, "RECORD", time.Unix(1e9, 0))
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if two, _ := pack(files, "RECORD", time.Unix(1e9, 0)); !bytes.Equal(one, two) {
			t.Fatal("the same files, other bytes")
		}
	}
	if other, _ := pack(files, "RECORD", time.Unix(0, 0)); bytes.Equal(one, other) {
		t.Error("the times are not in the archive")
	}
}
