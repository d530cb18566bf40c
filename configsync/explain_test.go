// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/lkg"
)

// R-CS-61: what the next start would do is told by the function that decides there, without a write.
func TestExplainTellsWhatTheNextStartDoes(t *testing.T) {
	onNode(t, func(n *node) {
		v1 := n.promoted()
		v2 := n.push("v2", "crash-2")
		n.wait(time.Minute)
		writes := n.disk.Writes()
		got, err := configsync.Explain(n.t.Context(), n.disk, n.options2())
		if err != nil {
			t.Fatal(err)
		}
		if got.Next.Use.UID != v1.UID || got.Next.Rejected == nil || got.Next.Rejected.Ref.UID != v2.UID {
			t.Errorf("the next start uses %+v because of %+v, want v1 because v2 is rejected", got.Next.Use, got.Next.Rejected)
		}
		if got.Next.Condition != n.rec.Last().Condition {
			t.Errorf("condition %+v, want the one that is reported, %+v", got.Next.Condition, n.rec.Last().Condition)
		}
		if n.disk.Writes() != writes {
			t.Error("Explain wrote to the disk")
		}
		o := n.options2()
		n.init = "invalid-init"
		if got, err = configsync.Explain(n.t.Context(), n.disk, o); err != nil || got.Next.Refuse == nil {
			t.Errorf("Explain with a bad init config = %+v, %v; want a refusal in it", got.Next, err)
		}
	})
}

// A missing part is named, all missing parts at once.
func TestNewNamesMissingOptions(t *testing.T) {
	_, err := configsync.New(t.Context(), configsync.Options[string]{Source: newNode(t).server, RetryMin: -time.Second})
	if err == nil {
		t.Fatal("New without parts = nil, want an error")
	}
	for _, field := range []string{"Version", "Key", "Codec", "Init or Options.Default", "Store", "Fetcher", "Restarter", "RetryMin"} {
		if !strings.Contains(err.Error(), "Options."+field) {
			t.Errorf("error does not name Options.%s:\n%v", field, err)
		}
	}
	o := newNode(t).options2()
	o.Bounds = lkg.Bounds{MinTrial: time.Hour, MaxTrial: time.Minute}
	if _, err := configsync.New(t.Context(), o); err == nil || !strings.Contains(err.Error(), "Bounds") {
		t.Errorf("New with MinTrial above MaxTrial = %v, want an error that names Bounds", err)
	}
}
