// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprocess

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// program is a run of a program in place of the stand-in: this test binary, as a stand-in of its own with its own journal.
func program(t *testing.T, content string) (o Options, own string) {
	t.Helper()
	t.Setenv("BELAY_TEST_ROLE", "child")
	dir := t.TempDir()
	config, own := write(t, dir, content), filepath.Join(dir, "own")
	return Options{
		Config: config, Address: "127.0.0.1", Journal: filepath.Join(dir, "journal"), Log: io.Discard,
		Program: []string{os.Args[0], config, own},
	}, own
}

// start runs o on a thread of its own, which the program needs.
func start(ctx context.Context, o Options) <-chan error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		done <- Run(ctx, o)
	}()
	return done
}

func TestProgramIsServingWhenItAnswers(t *testing.T) {
	o, own := program(t, header+"healthzPort: "+strconv.Itoa(freePort(t))+"\n")
	ctx, cancel := context.WithCancel(t.Context())
	done := start(ctx, o)
	eventually(t, "the journal says that the program serves", func() bool { return events(t, o.Journal) == "started serving" })
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: got %v, want nil after it was told to stop", err)
	}
	if got, want := events(t, o.Journal), "started serving stopped"; got != want {
		t.Errorf("journal: got %q, want %q", got, want)
	}
	if got, want := events(t, own), "started serving stopped"; got != want {
		t.Errorf("the program's own journal: got %q, want %q: it must be told to stop", got, want)
	}
}

func TestProgramThatEndsIsAFailure(t *testing.T) {
	o, own := program(t, header+fmt.Sprintf("port: %d\n", takenPort(t)))
	err := <-start(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "the kubelet has ended: exit status 1") {
		t.Errorf("Run: got %v, want an error that says how the program ended", err)
	}
	for _, journal := range []string{o.Journal, own} {
		if got, want := events(t, journal), "started failed"; got != want {
			t.Errorf("%s: got %q, want %q", filepath.Base(journal), got, want)
		}
	}
}

func TestProgramThatIsNotThere(t *testing.T) {
	o, _ := program(t, header)
	o.Program = []string{"/nowhere/kubelet"}
	if err := <-start(t.Context(), o); err == nil || !strings.Contains(err.Error(), "starting the kubelet") {
		t.Errorf("Run: got %v, want an error that names what could not be started", err)
	}
}

func TestDropInIsWhatTheJournalNames(t *testing.T) {
	o, _ := program(t, header+"healthzPort: "+strconv.Itoa(freePort(t))+"\n")
	o.DropIn = filepath.Join(filepath.Dir(o.Config), "90-belay.conf")
	_, own, err := Load(o.Config)
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"", header + "maxPods: 31\n"} {
		want := own
		if content != "" {
			sum := sha256.Sum256([]byte(content))
			want = hex.EncodeToString(sum[:])
			if err := os.WriteFile(o.DropIn, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, got, err := o.loadConfig(); err != nil || got != want {
			t.Errorf("drop-in %q: got config %.12s, %v, want %.12s", content, got, err, want)
		}
	}
}
