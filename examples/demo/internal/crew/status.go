// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package crew

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/belayproject/belay/examples/demo/internal/story"
)

// document is what the demo needs of what `agent status -o json` prints.
type document struct {
	ConfigOK      struct{ Status, Reason, Message, Detail string }
	InUse         *config
	LastKnownGood config
	Rejected      []struct {
		config
		Reason string
	}
	Trial *struct {
		Healthy, Needed  string
		Counted, Allowed int
	}
}

type config struct{ Name, UID, Digest string }

func (c config) ref() story.Ref { return story.Ref{Name: c.Name, UID: c.UID, Digest: c.Digest} }

// Status is what the node's agent says of itself, asked by the agent's own status command. No API server is needed for
// it.
func (n *Node) Status(ctx context.Context) (story.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, n.options.Agent, "status", "--state-dir="+n.path("state"), "-o", "json")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return story.Report{}, fmt.Errorf("asking the agent: %w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return story.Report{}, fmt.Errorf("asking the agent: %w", err)
	}
	return parse(out)
}

// parse reads the agent's document.
func parse(raw []byte) (story.Report, error) {
	var d document
	if err := json.Unmarshal(raw, &d); err != nil {
		return story.Report{}, fmt.Errorf("reading what the agent says: %w", err)
	}
	if d.InUse == nil {
		return story.Report{}, errors.New("the agent does not run yet")
	}
	r := story.Report{
		Active: d.InUse.ref(), Good: d.LastKnownGood.ref(), Rejected: map[string]string{},
		Status: d.ConfigOK.Status, Reason: d.ConfigOK.Reason, Message: d.ConfigOK.Message,
		Detail: d.ConfigOK.Detail,
	}
	for _, bad := range d.Rejected {
		r.Rejected[bad.UID] = bad.Reason
	}
	if t := d.Trial; t != nil {
		healthy, err := time.ParseDuration(t.Healthy)
		needed, err2 := time.ParseDuration(t.Needed)
		if err := errors.Join(err, err2); err != nil {
			return story.Report{}, fmt.Errorf("reading what the agent says of the trial: %w", err)
		}
		r.Trial = &story.Trial{Healthy: healthy, Needed: needed, Crashes: t.Counted, Allowed: t.Allowed}
	}
	return r, nil
}
