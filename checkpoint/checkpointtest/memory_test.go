// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpointtest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/checkpoint/checkpointtest"
)

func Example() {
	ctx := context.Background()
	m := &checkpointtest.Memory{}
	if err := m.Put(ctx, "current", []byte("v1")); err != nil {
		log.Fatal(err)
	}
	// From here on the disk is full.
	m.OnCall = func(op, _ string) error {
		if op == "put" {
			return checkpoint.ErrFull
		}
		return nil
	}
	err := m.Put(ctx, "current", []byte("v2"))
	fmt.Println(errors.Is(err, checkpoint.ErrFull), errors.Is(err, checkpoint.ErrNotWritten))
	got, err := m.Get(ctx, "current")
	fmt.Println(string(got), err)

	// Output:
	// true true
	// v1 <nil>
}

func TestMemoryFailsOnDemand(t *testing.T) {
	ctx := t.Context()
	unsure := fmt.Errorf("%w: pulled", checkpoint.ErrIndeterminate)
	var asked []string
	m := &checkpointtest.Memory{MaxPayload: 3}
	m.OnCall = func(op, name string) error {
		asked = append(asked, op+" "+name)
		if name == "bad" {
			return unsure
		}
		return nil
	}
	if err := m.Put(ctx, "bad", []byte("x")); !errors.Is(err, checkpoint.ErrIndeterminate) || errors.Is(err, checkpoint.ErrNotWritten) {
		t.Errorf("Put: got %v, want ErrIndeterminate alone", err)
	}
	if err := m.Delete(ctx, "bad"); !errors.Is(err, unsure) {
		t.Errorf("Delete: got %v, want %v", err, unsure)
	}
	if _, err := m.Get(ctx, "bad"); !errors.Is(err, unsure) {
		t.Errorf("Get: got %v, want %v", err, unsure)
	}
	if _, err := m.List(ctx, "bad"); !errors.Is(err, unsure) {
		t.Errorf("List: got %v, want %v", err, unsure)
	}
	if err := m.Put(ctx, "good", []byte("four")); !errors.Is(err, checkpoint.ErrTooLarge) {
		t.Errorf("Put of 4 bytes: got %v, want ErrTooLarge", err)
	}
	if err := m.Put(ctx, "good", []byte("3 b")); err != nil {
		t.Errorf("Put of 3 bytes: got %v, want nil", err)
	}
	want := []string{"put bad", "delete bad", "get bad", "list bad", "put good"}
	if fmt.Sprint(asked) != fmt.Sprint(want) {
		t.Errorf("OnCall: was asked %q, want %q", asked, want)
	}
}
