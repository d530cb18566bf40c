// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/examples/agent/internal/admin"
	"github.com/belayproject/belay/examples/internal/agent/report"
	"github.com/belayproject/belay/lkg"
)

// Live is the node of a running agent.
type Live struct {
	// Name is that of the node, Source names the kind of source, for people.
	Name, Source string
	// Started is when the agent was started.
	Started time.Time
	// Child gives the process id of the child; 0 while none runs.
	Child func() int
	// LastEnd gives how the last child ended on its own; nil if none has.
	LastEnd func() *report.End
	// Notes are what a person should look at besides.
	Notes []string
	// Records are those that Syncer works on.
	Records lkg.Getter
	// Options are the agent's, Init or Default among them.
	Options Options
	// Syncer is the agent's.
	Syncer *syncer
	// Amend adds what the Syncer doesn't know to its status.
	Amend func(configsync.Status) configsync.Status
}

var _ admin.Agent = (*Live)(nil)

// Status joins what is on record with what the agent knows now.
func (l *Live) Status(ctx context.Context) (report.Document, error) {
	e, err := explain(ctx, l.Records, l.Options)
	if err != nil {
		return report.Document{}, err
	}
	live := &report.Live{
		Node: l.Name, Status: l.Amend(l.Syncer.Status()),
		Agent: report.Agent{PID: os.Getpid(), Source: l.Source, Started: l.Started, Child: l.Child(), LastEnd: l.LastEnd()},
	}
	d := report.Build(time.Now(), live, e)
	d.Trouble = append(d.Trouble, l.Notes...)
	return d, nil
}

// ForgetBad takes back what is held against every version of the object with that UID. The agent tries it again at
// once.
func (l *Live) ForgetBad(ctx context.Context, uid string) error {
	if uid == "" {
		return errors.New("the UID is missing")
	}
	return l.Syncer.Forget(ctx, uid)
}

// UseLocal leaves the assigned config for the local one, with a restart of the child where it runs another.
func (l *Live) UseLocal(ctx context.Context, reason string) error {
	return l.Syncer.UseLocal(ctx, reason)
}
