// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faultproof_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"testing"
	"time"
)

// opener is a process that opens and closes a store over and over, and what it said last.
type opener struct {
	said      chan string
	input     io.Closer
	ended     <-chan error
	met, held int
}

func startOpener(t *testing.T, dir string) *opener {
	t.Helper()
	cmd := self("open", storeVar+"="+dir)
	out, output, err := os.Pipe()
	must(t, err)
	in, err := cmd.StdinPipe()
	must(t, err)
	cmd.Stdout, cmd.Stderr = output, os.Stderr
	ended, err := startBound(cmd, 0)
	must(t, err)
	output.Close()
	o := &opener{said: make(chan string, 1), input: in, ended: ended}
	go func() {
		defer close(o.said)
		defer out.Close()
		for scan := bufio.NewScanner(out); scan.Scan(); {
			o.said <- scan.Text()
		}
	}()
	return o
}

func (o *opener) take(t *testing.T, line string, ok bool) {
	t.Helper()
	if _, err := fmt.Sscan(line, &o.met, &o.held); !ok || err != nil {
		t.Fatalf("a process ended early, or said %q: %v", line, err)
	}
}

// end lets the process end, and takes what it says until then.
func (o *opener) end(t *testing.T) {
	t.Helper()
	_ = o.input.Close()
	for line := range o.said {
		o.take(t, line, true)
	}
	select {
	case err := <-o.ended:
		if err != nil {
			t.Errorf("a process failed: %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("a process does not end")
	}
}
