// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strings"
	"testing"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/lkg"
)

// R-CS-81: the log has the reason, and each news once, however often the status is reported.
func TestNewsAreLoggedOnce(t *testing.T) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	ctx := klog.NewContext(t.Context(), logger)
	bad := lkg.Condition{Status: lkg.StatusFalse, Reason: "failed to validate current (UID: u2)", Message: "using last known good: (UID: u1)"}
	trial := func(healthy int, failing ...string) *configsync.TrialStatus {
		return &configsync.TrialStatus{Counted: healthy, Failing: failing}
	}
	var l newsLog
	for _, s := range []configsync.Status{
		{Condition: bad, Trial: trial(1)},
		{Condition: bad, Trial: trial(2)},                                             // progress is no news
		{Condition: bad, Trial: trial(2, "probe: refused")},                           // news
		{Condition: bad, Trial: trial(2, "probe: timeout")},                           // the same trouble in other words
		{Condition: bad, LastKnownGood: lkg.Ref{UID: "u1"}},                           // news
		{Condition: bad, LastKnownGood: lkg.Ref{UID: "u1"}, Alarm: "nothing is left"}, // news, and an error
	} {
		if err := l.Report(ctx, s); err != nil {
			t.Errorf("Report = %v, want nil", err)
		}
	}
	text := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
	for what, want := range map[string]int{"Status changed": 4, bad.Reason: 4, "Alarm was raised": 1, `why="nothing is left"`: 1} {
		if got := strings.Count(text, what); got != want {
			t.Errorf("the log has %q %d times, want %d:\n%s", what, got, want, text)
		}
	}
}
