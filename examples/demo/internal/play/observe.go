// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"context"
	"sync"
	"time"

	"github.com/belayproject/belay/examples/demo/internal/story"
)

// An observation is what was seen of all nodes at about one moment.
type observation struct {
	at   time.Time
	seen []story.Seen
	// server is nil if the reports come from the API server, and else why they come from the agents.
	server error
}

// observe looks at every node, from all sides at once. Reports come from the API server, and where it doesn't answer from the agents
// themselves.
func (p *Player) observe(ctx context.Context) observation {
	reports, err := p.o.Cluster.Read(ctx)
	o := observation{seen: make([]story.Seen, len(p.nodes)), server: err}
	var wg sync.WaitGroup
	for i, n := range p.nodes {
		wg.Go(func() {
			s := story.Seen{Node: n.Name}
			if err == nil {
				s.Report, s.ReportErr = reports[n.Name].Report, reports[n.Name].Err
			} else {
				s.Report, s.ReportErr = n.Status(ctx)
			}
			if s.Runs, s.Healthz = n.Runs(); s.Healthz == nil {
				s.Healthz = n.Healthz(ctx) // at once: the journal says why healthz does not answer
			}
			o.seen[i] = s
		})
	}
	wg.Wait()
	o.at = time.Now()
	return o
}
