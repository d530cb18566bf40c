// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/belayproject/belay/examples/internal/e2e"
)

// L-CS-28: an edit of the rendered file is told as an event, and repaired where the flag asks for it; else the status says so, and the file stays.
func TestRenderedFileIsWatched(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.Env(t), "drift")
	w.Flags = append(w.Flags, "--drift-interval=100ms", "--on-drift=repair")
	p := w.Start(t)
	v1 := w.good(t, "v1")
	const edited = "edited by hand\n"
	w.edit(t, edited)
	e2e.Eventually(t, soon, "the file is repaired", func() error { return w.rendered(v1.Data["kubelet"]) })
	w.told(t, "ConfigDrifted")
	if code := p.Stop(t); code != 0 {
		t.Errorf("asked to stop, the agent exits with %d, want 0", code)
	}

	w.Flags = append(w.Flags, "--on-drift=report")
	w.Start(t)
	e2e.Eventually(t, soon, "v1 is used again", func() error { return w.Uses(t, string(v1.UID)) })
	w.runs(t, v1)
	w.edit(t, edited)
	e2e.Eventually(t, soon, "the status tells of the drift", func() error {
		d, err := w.Status(t)
		if err == nil && !strings.Contains(strings.Join(d.Trouble, "\n"), "ALARM: the file is sha256:") {
			err = fmt.Errorf("trouble is %q", d.Trouble)
		}
		return err
	})
	if err := w.rendered(edited); err != nil {
		t.Error(err)
	}
}

func (w *world) edit(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(w.Render, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// rendered says, as an error, that the file holds something else.
func (w *world) rendered(want string) error {
	got, err := os.ReadFile(w.Render)
	if err == nil && string(got) != want {
		err = fmt.Errorf("the file holds %q, want %q", got, want)
	}
	return err
}
