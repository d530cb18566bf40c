// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belayproject/belay/examples/internal/agent/report"
)

// install replaces the child's program by a script that notes each start with the config that it dislikes, and then
// dies or runs.
func (n *local) install(t *testing.T, kubelet, dislikes string, dies bool) {
	t.Helper()
	does := ""
	if dies {
		does = "exit 1"
	}
	script := fmt.Sprintf("#!/bin/sh\nif grep -q %q %q; then\n\techo start >> %q\n\t%s\nfi\nexec %q \"$@\"\n",
		dislikes, n.Render, n.at("starts"), does, kubelet)
	script = strings.Replace(script, "\t\nfi", "fi", 1)
	temp := n.at("kubelet.new")
	if err := os.WriteFile(temp, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temp, n.Child[0]); err != nil {
		t.Fatal(err)
	}
}

// starts counts the starts with the config that the child dislikes.
func (n *local) starts(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(n.at("starts"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(text), "start")
}

// Bytes that a program has crashed with are not tried again with that program, under whatever name and after
// a restart of the agent; a new program is given them once more, without a new word from anywhere.
func TestRejectedBytesAreTriedByANewProgram(t *testing.T) {
	t.Parallel()
	n := newLocal(t)
	kubelet := n.Child[0]
	n.Child[0] = filepath.Join(n.dir, "..", "kubelet")
	const disliked = "maxPods: 77"
	n.install(t, kubelet, disliked, true)
	p := n.Start(t)
	good := n.wants(t, n.Config("maxPods: 41\n"))
	n.until(t, "a good config is promoted", promoted(good))

	bad := n.wants(t, n.Config(disliked+"\n"))
	n.until(t, "the bad config is left", rejected(bad, "crash loop"))
	tried := n.starts(t)
	if tried == 0 {
		t.Fatal("the bad config was never tried")
	}
	other := n.wants(t, n.Config("maxPods: 42\n"))
	n.until(t, "another good config is promoted", promoted(other))
	n.wants(t, n.Config(disliked+"\n"))
	n.until(t, "the same bytes are refused", func(d report.Document) string {
		if d.ConfigOK.Status != "False" || d.InUse == nil || d.InUse.Digest != other {
			return fmt.Sprintf("ConfigOK is %+v", d.ConfigOK)
		}
		return ""
	})
	p.Stop(t)
	n.Start(t)
	d := n.until(t, "the same bytes are refused after a restart", func(d report.Document) string {
		if d.Agent == nil || d.Agent.Child == 0 || d.ConfigOK.Status != "False" || d.InUse == nil || d.InUse.Digest != other {
			return fmt.Sprintf("ConfigOK is %+v", d.ConfigOK)
		}
		return ""
	})
	if now := n.starts(t); now != tried {
		t.Errorf("the bytes were tried %d times by one program, want %d", now, tried)
	}

	n.install(t, kubelet, disliked, false)
	child, err := os.FindProcess(d.Agent.Child)
	if err == nil {
		err = child.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	n.until(t, "the new program runs what the old one has crashed with", promoted(bad))
	if now := n.starts(t); now != tried+1 {
		t.Errorf("the bytes were tried %d times more by the new program, want once", now-tried)
	}
}
