// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"sync"

	"k8s.io/klog/v2"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/lkg"
)

// newsLog writes each change of the status to the log that belongs to the context, once, however often it is reported.
type newsLog struct {
	mu   sync.Mutex
	last news
}

// news are what of a status is worth a line.
type news struct {
	condition        lkg.Condition
	active, good     lkg.Ref
	trouble, alarm   string
	failing, onTrial bool
}

// Report implements configsync.Reporter. It never fails.
func (l *newsLog) Report(ctx context.Context, s configsync.Status) error {
	n := news{
		condition: s.Condition, active: s.Active, good: s.LastKnownGood, trouble: s.Error, alarm: s.Alarm,
		onTrial: s.Trial != nil, failing: s.Trial != nil && len(s.Trial.Failing) > 0,
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n == l.last {
		return nil
	}
	l.last = n
	log := klog.FromContext(ctx)
	if s.Alarm != "" {
		log.Error(nil, "Alarm was raised", "why", s.Alarm)
	}
	log.Info("Status changed", "configOK", s.Condition.Status, "message", s.Condition.Message, "reason", s.Condition.Reason,
		"detail", detail(s), "active", s.Active.UID, "lastKnownGood", s.LastKnownGood.UID, "onTrial", n.onTrial, "failing", n.failing, "error", s.Error)
	return nil
}

// detail is what is on record behind the reason of the condition, such as the field that is wrong. It holds no value of a payload.
func detail(s configsync.Status) string {
	for _, bad := range s.Rejected {
		if bad.Reason == s.Condition.Reason {
			return bad.Evidence
		}
	}
	return ""
}
