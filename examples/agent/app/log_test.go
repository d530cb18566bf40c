// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/examples/internal/e2e"
)

// R-CS-81: the log of the whole agent, as verbose as one would run it, has the reason of the condition and more detail
// on it, and nothing of a payload, good or bad. S-CS-07.
func TestLogHasDetailAndNoPayload(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.Env(t), "logged")
	w.Flags = append(w.Flags, "-v=4")
	p := w.Start(t)
	v1 := w.push(t, "v1", w.Config("clusterDomain: good-secret.example\n# good-secret\n"))
	e2e.Eventually(t, soon, "v1 is promoted", func() error { return w.Promoted(t, string(v1.UID)) })
	for _, c := range []struct{ name, config, reason, detail string }{
		{"undecodable", "clusterDomain: bad-secret.example\nmaxPods: bad-secret\n", "failed to load current (UID: %s)", "maxPods"},
		{"invalid", "clusterDomain: bad-secret.example\nstaticPodPath: 271828/dir\n", "failed to validate current (UID: %s)", "staticPodPath"},
	} {
		bad := w.push(t, c.name, w.Config(c.config))
		reason := fmt.Sprintf(c.reason, bad.UID)
		w.says(t, corev1.ConditionFalse, fellBack(v1), reason)
		e2e.Eventually(t, soon, "the log has reason and detail of "+c.name, func() error { return detailed(p.Log(), reason, c.detail) })
	}
	for _, secret := range []string{"good-secret", "bad-secret", "271828"} {
		if i := strings.Index(p.Log(), secret); i >= 0 {
			t.Errorf("the log holds %q of a payload: ...%s", secret, p.Log()[max(0, i-200):i+len(secret)])
		}
	}
}

// detailed says, as an error, that no line about the status has the reason and, behind it, a detail with that word.
// Where there is another detail, none will follow.
func detailed(log, reason, word string) error {
	for line := range strings.Lines(log) {
		_, rest, ok := strings.Cut(line, "reason=\""+reason)
		if !ok || !strings.Contains(line, "Status changed") {
			continue
		}
		_, detail, _ := strings.Cut(rest, "detail=")
		switch {
		case strings.Contains(detail, word):
			return nil
		case !strings.HasPrefix(detail, `""`):
			return fmt.Errorf("the status has reason %q and detail %s, want %q in it: %w", reason, detail, word, e2e.ErrHopeless)
		}
	}
	return fmt.Errorf("no status is logged with reason %q and %q in its detail", reason, word)
}
