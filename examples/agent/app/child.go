// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/examples/internal/agent/report"
	"github.com/belayproject/belay/examples/internal/agent/settings"
	"github.com/belayproject/belay/lkg"
)

// streamEnd holds the last end of the child that was not asked for. The next start of the child tells it to the Syncer,
// also where the agent has died in between.
const streamEnd = "child-end"

// endRecord is that record.
type endRecord struct {
	// Start names the start of the run that ended, so that an end is evidence once.
	Start     string       `json:"start"`
	Kind      lkg.ExitKind `json:"kind"`
	Detail    string       `json:"detail"`
	Fault     lkg.Fault    `json:"fault,omitempty"`
	Signature string       `json:"signature,omitempty"`
	Last      []string     `json:"last,omitempty"`
	Witnessed bool         `json:"witnessed,omitempty"`
}

// childLife is what the agent knows of its child. Make it with [newChildLife].
type childLife struct {
	store configsync.Store // nil keeps nothing
	ends  chan endRecord   // what keepEnds records

	mu    sync.Mutex // guards what follows
	start string     // names the start of the present run
	last  *report.End
}

func newChildLife() *childLife { return &childLife{ends: make(chan endRecord, 1)} }

// beginLife notes that a start is on record.
func (c *childLife) beginLife(ctx context.Context) {
	if c.store == nil {
		return
	}
	name, err := newestStart(ctx, c.store)
	if err != nil {
		name = "" // an end of this run is not kept
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.start = name
}

// noteEnd notes an end that was not asked for. It does not wait for the disk.
func (c *childLife) noteEnd(e lkg.Exit, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = &report.End{At: now.UTC(), How: e.Detail, Cause: e.Signature, Last: e.Last}
	end := endRecord{
		Start: c.start, Kind: e.Kind, Detail: e.Detail, Fault: e.Fault, Signature: e.Signature, Last: e.Last, Witnessed: e.Witnessed,
	}
	select {
	case <-c.ends: // an older one
	default:
	}
	c.ends <- end
}

// lastEnd is the last end that was not asked for; nil if there was none.
func (c *childLife) lastEnd() *report.End {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// record keeps an end for the agent after this one.
func (c *childLife) record(ctx context.Context, end endRecord) error {
	if c.store == nil || end.Start == "" {
		return nil
	}
	raw, err := json.Marshal(end)
	if err == nil {
		err = c.store.Put(ctx, streamEnd, raw)
	}
	if err != nil {
		return fmt.Errorf("recording the end of the child: %w", err)
	}
	return nil
}

// recallEnd returns the end that an agent before this one has recorded, if no start came after it.
func (c *childLife) recallEnd(ctx context.Context) (e lkg.Exit, found bool, err error) {
	if c.store == nil {
		return e, false, nil
	}
	raw, err := c.store.Get(ctx, streamEnd)
	if errors.Is(err, fs.ErrNotExist) {
		return e, false, nil
	}
	var end endRecord
	if err == nil {
		err = json.Unmarshal(raw, &end)
	}
	var newest string
	if err == nil {
		newest, err = newestStart(ctx, c.store)
	}
	if err != nil {
		return e, false, fmt.Errorf("reading the last end of the child: %w", err)
	}
	if end.Start == "" || end.Start != newest {
		return e, false, nil
	}
	e = lkg.Exit{
		Kind: end.Kind, Detail: end.Detail + "; the agent ended before it was started again",
		Fault: end.Fault, Signature: end.Signature, Last: end.Last, Witnessed: end.Witnessed,
	}
	return e, true, nil
}

// newestStart names the newest start on record; empty for none.
func newestStart(ctx context.Context, store configsync.Store) (string, error) {
	st, err := lkg.Load(ctx, store, settings.Version())
	if err != nil || len(st.Starts) == 0 {
		return "", err
	}
	s := st.Starts[len(st.Starts)-1]
	return fmt.Sprintf("%s %s %s %d", s.At.UTC().Format(time.RFC3339Nano), s.BootID, s.Assignment, s.N), nil
}

// keepEnds records each end and has the node's condition say it, until ctx ends.
func (a *agent) keepEnds(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case end := <-a.child.ends:
			if err := a.child.record(ctx, end); err != nil {
				a.log.Error(err, "End of the child is forgotten if the agent dies before the next start")
			}
			if err := a.syncer.Announce(ctx); err != nil && ctx.Err() == nil {
				a.log.Info("End of the child is not reported yet", "why", err.Error())
			}
		}
	}
}
