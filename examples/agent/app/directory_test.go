// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/examples/internal/agent/report"
	"github.com/belayproject/belay/examples/internal/e2e"
)

// A local is a node whose wanted config is in a directory: there is no API server.
type local struct {
	*e2e.Agent
	dir  string
	uids []string // of configs, in the order in which they were shown
}

func newLocal(t *testing.T, flags ...string) *local {
	t.Helper()
	n := &local{Agent: e2e.NewAgent(t, &programs, "", ""), dir: t.TempDir()}
	n.Flags = append(append(n.Flags, "--source=directory="+n.dir), flags...)
	return n
}

// wants makes text the wanted config, and returns its digest.
func (n *local) wants(t *testing.T, text string) string {
	t.Helper()
	temp := filepath.Join(t.TempDir(), "kubelet")
	if err := errors.Join(os.WriteFile(temp, []byte(text), 0o600), os.Rename(temp, filepath.Join(n.dir, "kubelet"))); err != nil {
		t.Fatal(err)
	}
	return configsync.DigestOf(map[string]string{"kubelet": text})
}

// until waits for a status in which nothing is missing.
func (n *local) until(t *testing.T, what string, missing func(report.Document) string) (d report.Document) {
	t.Helper()
	e2e.Eventually(t, soon, what, func() (err error) {
		if d, err = n.Status(t); err != nil {
			return err
		}
		if why := missing(d); why != "" {
			return fmt.Errorf("%s; in use is %+v, last known good %+v, the trial %+v, rejected %+v, trouble %q",
				why, d.InUse, d.LastKnownGood, d.Trial, d.Rejected, d.Trouble)
		}
		return nil
	})
	return d
}

// promoted says what is missing for the config of that digest to be in use and the last known good one.
func promoted(digest string) func(report.Document) string {
	return func(d report.Document) string {
		switch {
		case d.InUse == nil || d.InUse.Digest != digest:
			return "another config is in use"
		case d.LastKnownGood.Digest != digest || d.Trial != nil:
			return "it is not promoted"
		}
		return ""
	}
}

// rejected says what is missing for the config of that digest to be held as bad, for a reason or on evidence that has those words.
func rejected(digest, words string) func(report.Document) string {
	return func(d report.Document) string {
		for _, r := range d.Rejected {
			if r.Digest == digest && strings.Contains(r.Reason+r.Evidence, words) {
				return ""
			}
		}
		return "it is not rejected because of " + words
	}
}
