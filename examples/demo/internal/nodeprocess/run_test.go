// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprocess

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/testproc"
)

// deadline bounds every wait on a real process or socket.
const deadline = 20 * time.Second

// TestMain turns the test binary into a node process, or into a parent of one, when it was started as such.
func TestMain(m *testing.M) {
	switch os.Getenv("BELAY_TEST_ROLE") {
	case "":
		os.Exit(m.Run())
	case "parent":
		child := exec.Command(os.Args[0], os.Args[1:]...)
		child.Env = append(os.Environ(), "BELAY_TEST_ROLE=child")
		if err := child.Start(); err != nil {
			os.Exit(3)
		}
		fmt.Println(child.Process.Pid)
		_ = child.Wait()
	case "child":
		o := Options{Config: os.Args[1], Address: "127.0.0.1", Journal: os.Args[2], Log: io.Discard}
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		err := Run(ctx, o)
		stop()
		if err != nil {
			os.Exit(1)
		}
	}
	os.Exit(0)
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(deadline); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not seen within %s: %s", deadline, what)
		}
	}
}

// freePort is a port that nobody listened on a moment ago.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// takenPort is a port that is listened on until the test ends.
func takenPort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

func events(t *testing.T, journal string) string {
	t.Helper()
	entries, err := ReadJournal(journal)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, string(e.Event))
	}
	return strings.Join(all, " ")
}

func TestRunServesHealthzUntilTold(t *testing.T) {
	dir, port := t.TempDir(), freePort(t)
	journal := filepath.Join(dir, "journal")
	o := Options{
		Config: write(t, dir, header+"healthzPort: "+strconv.Itoa(port)+"\n"), Address: "127.0.0.1",
		Journal: journal, Log: io.Discard,
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, o) }()
	eventually(t, "healthz answers ok", func() bool {
		resp, err := http.Get("http://127.0.0.1:" + strconv.Itoa(port) + "/healthz")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return err == nil && resp.StatusCode == http.StatusOK && string(body) == "ok\n"
	})
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: got %v, want nil after it was told to stop", err)
	}
	if got, want := events(t, journal), "started serving stopped"; got != want {
		t.Errorf("journal: got %q, want %q", got, want)
	}
}

func TestRunGivesUpOnWhatTheNodeCannotDo(t *testing.T) {
	taken := takenPort(t)
	for _, c := range []struct{ name, content, want string }{
		{"port is taken", header + fmt.Sprintf("port: %d\n", taken), "serving the kubelet's API: "},
		{"port of healthz is taken", header + fmt.Sprintf("healthzPort: %d\n", taken), "serving healthz: "},
		{"invalid", header + "imageGCLowThresholdPercent: 90\n", "imageGCLowThresholdPercent must be less"},
		{"undecodable", header + "maxPods: many\n", "cannot unmarshal"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			journal := filepath.Join(dir, "journal")
			err := Run(t.Context(), Options{Config: write(t, dir, c.content), Journal: journal, Log: io.Discard})
			if !strings.Contains(errText(err), c.want) {
				t.Errorf("Run: got %v, want an error with %q", err, c.want)
			}
			if got, want := events(t, journal), "started failed"; got != want {
				t.Errorf("journal: got %q, want %q", got, want)
			}
		})
	}
}

func TestRunEndsWithItsParent(t *testing.T) {
	dir := t.TempDir()
	journal := filepath.Join(dir, "journal")
	parent := exec.CommandContext(t.Context(), os.Args[0], write(t, dir, header+fmt.Sprintf("healthzPort: %d\n", freePort(t))), journal)
	parent.Env = append(os.Environ(), "BELAY_TEST_ROLE=parent")
	_, line := testproc.Start(t, parent)
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the child serves", func() bool { return strings.HasSuffix(events(t, journal), "serving") })
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	eventually(t, "the child says that it stopped", func() bool { return strings.HasSuffix(events(t, journal), "stopped") })
	eventually(t, "the child is gone", func() bool { return testproc.Ended(pid) == nil })
}

func TestReadJournalLeavesOutAnUnfinishedLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	if entries, err := ReadJournal(path); err != nil || len(entries) != 0 {
		t.Fatalf("no journal: got %d entries, %v; want none, nil", len(entries), err)
	}
	if err := appendEntry(path, Entry{PID: 1, Event: Started}); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, c := range []struct {
		add  string
		want int
	}{{`{"pid":2,`, 1}, {`"event":"serving"}`, 1}, {"\n", 2}} {
		if _, err := f.WriteString(c.add); err != nil {
			t.Fatal(err)
		}
		if entries, err := ReadJournal(path); err != nil || len(entries) != c.want {
			t.Errorf("after %q: got %d entries, %v; want %d, nil", c.add, len(entries), err, c.want)
		}
	}
	if _, err := f.WriteString("no json\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadJournal(path); !strings.Contains(errText(err), "line 3") {
		t.Errorf("broken line: got %v, want an error that names line 3", err)
	}
}
