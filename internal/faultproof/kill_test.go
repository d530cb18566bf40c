// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faultproof_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/checkpoint"
)

const storeVar = "BELAY_FAULTS_STORE"

// lines is a journal that a process writes to its output, a line a system call, so that it outlives the process.
type lines struct{}

func (lines) begin(stream string, v value) {
	os.Stdout.WriteString(fmt.Sprintf("begin %s %d\n", stream, v))
}

func (lines) done(stream string, v value, err error) {
	if err == nil {
		os.Stdout.WriteString(fmt.Sprintf("done %s %d\n", stream, v))
	}
}

// writeRole writes to all streams, from what it finds on, until it is killed.
func writeRole() error {
	k, err := openOurs(os.Getenv(storeVar))
	if err != nil {
		return err
	}
	l := newLedger()
	for _, stream := range streams {
		v, _, err := k.look(stream)
		if err != nil {
			return fmt.Errorf("%s: %w", stream, err)
		}
		l.of(stream).last = max(v, value(time.Now().UnixMicro())) // a value that no other process had
	}
	w := writers{keeper: k, deletes: true, ledger: l, journal: both{l, lines{}}}
	return errors.Join(w.run(context.Background(), uint64(os.Getpid()))...)
}

// killOnce lets a process write, kills it at an instant after its start or after its first line, and enters what it
// said into the ledger.
func killOnce(t *testing.T, dir string, l *ledger, instant time.Duration, atStart bool) {
	t.Helper()
	cmd := self("write", storeVar+"="+dir)
	out, output, err := os.Pipe()
	must(t, err)
	cmd.Stdout, cmd.Stderr = output, os.Stderr
	must(t, cmd.Start())
	output.Close()
	kill := func() { time.AfterFunc(instant, func() { _ = cmd.Process.Kill() }) }
	if atStart {
		kill()
	}
	for scan := bufio.NewScanner(out); scan.Scan(); {
		if !atStart {
			kill()
			atStart = true
		}
		var what, stream string
		var v value
		if n, err := fmt.Sscan(scan.Text(), &what, &stream, &v); n < 3 {
			t.Fatalf("the process said %q: %v", scan.Text(), err)
		}
		if what == "begin" {
			l.begin(stream, v)
		} else {
			l.done(stream, v, nil)
		}
	}
	out.Close()
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the process ended by itself: %v", err)
	}
}

// P1: a process that writes to several streams is killed at random instants, from its start on. No acknowledged record
// is lost, none is torn, and nothing is left behind.
func TestKilledProcessesLoseNothing(t *testing.T) {
	kills := figure(40, 1000, 10000)
	dir := t.TempDir() + "/store"
	l := newLedger()
	done := 0
	for seed := range seeds(t) {
		rng := random(seed, 0)
		killOnce(t, dir, l, time.Duration(rng.Int64N(int64(10*time.Millisecond))), rng.IntN(3) == 0)
		k, broken := inspect(subject{open: ours().open}, dir, l)
		for _, b := range broken {
			t.Errorf("kill %d: %s\n\t%s", done, b, howTo(t, seed))
		}
		if k == nil || t.Failed() {
			break
		}
		must(t, k.close())
		if done++; done >= kills {
			break
		}
	}
	rest := fmt.Sprintf("acknowledged=%d lost=0 torn=0", l.acknowledged)
	report(t, "P1", "kills", done, kills, rest, !t.Failed())
}

// openRole opens the store, writes, and closes it, again and again, until its input ends. It prints how often it met
// another one. A witness that only the holder makes and removes shows two at once, and so does a generation that
// somebody else took.
func openRole() error {
	dir := os.Getenv(storeVar)
	ended := make(chan struct{})
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		close(ended)
	}()
	met, held := 0, 0
	for {
		select {
		case <-ended:
			return nil
		default:
		}
		store, err := checkpoint.Open(dir, options())
		switch {
		case errors.Is(err, checkpoint.ErrLocked):
			met++
		case err != nil:
			return err
		default:
			if err := holdOnce(store, dir+".witness"); err != nil {
				return err
			}
			held++
		}
		fmt.Println(met, held)
	}
}

func holdOnce(store *checkpoint.Store, witness string) error {
	f, err := os.OpenFile(witness, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("two processes have the store open: %w", err)
	}
	if err := f.Close(); err != nil {
		return err
	}
	ctx := context.Background()
	was, err := store.Read(ctx, "current")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for n := range uint64(3) {
		if err := store.Put(ctx, "current", []byte(fmt.Sprint(os.Getpid(), time.Now().UnixNano(), n))); err != nil {
			return err
		}
		if now, err := store.Read(ctx, "current"); err != nil || now.Generation != was.Generation+n+1 {
			return fmt.Errorf("write %d after generation %d became generation %d: %w", n, was.Generation, now.Generation, err)
		}
	}
	if err := os.Remove(witness); err != nil {
		return err
	}
	return store.Close()
}

// P3: two processes want one store at once, a thousand times. One has it, the other one is told so, and no writes
// interleave.
func TestTwoOpenersNeverInterleave(t *testing.T) {
	want := figure(100, 1000, 10000)
	dir := t.TempDir() + "/store"
	var opened [2]*opener
	for i := range opened {
		opened[i] = startOpener(t, dir)
	}
	met, held := 0, 0
	deadline := time.After(5 * time.Minute)
	for met < want || held < want/10 || opened[0].held == 0 || opened[1].held == 0 {
		select {
		case <-deadline:
			t.Fatalf("only %d overlaps", met)
		case line, ok := <-opened[0].said:
			opened[0].take(t, line, ok)
		case line, ok := <-opened[1].said:
			opened[1].take(t, line, ok)
		}
		met, held = opened[0].met+opened[1].met, opened[0].held+opened[1].held
	}
	for _, o := range opened {
		o.end(t)
	}
	report(t, "P3", "overlaps", met, want, fmt.Sprintf("held=%d interleaved=0", held), !t.Failed())
}
