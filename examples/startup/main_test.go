package main

import "testing"

func TestMeasure(t *testing.T) {
	if err := measure("../../testdata/digits/xnnpack.pte"); err != nil {
		t.Error(err)
	}
	if err := measure("absent.pte"); err == nil {
		t.Error("no error for a file that is not there")
	}
}
