// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/term"

	"github.com/belayproject/belay/examples/internal/kubectl-belay/doctor"
	"github.com/belayproject/belay/examples/internal/kubectl-belay/page"
	"github.com/belayproject/belay/examples/internal/kubectl-belay/report"
	"github.com/belayproject/belay/examples/internal/kubectl-belay/view"
	"github.com/belayproject/belay/examples/kubectl-belay/internal/cluster"
	"github.com/belayproject/belay/examples/kubectl-belay/internal/settings"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// leasePrefix begins the names of the Leases of examples/controller; the domain follows.
const leasePrefix = "belay-rollout-"

// statuses is what status prints for programs.
type statuses struct {
	Rollouts []report.Status `json:"rollouts"`
}

func (a *app) status(ctx context.Context, s *settings.Status, name string) error {
	c, err := cluster.Connect(s.Cluster)
	if err != nil {
		return err
	}
	all, err := c.Rollouts(ctx)
	if err != nil {
		return err
	}
	revisions, _ := revisionsOf(ctx, c) // without them a rollback is not offered
	if name == "" && len(all) > 1 && !s.Watch {
		return a.overview(s, all, revisions)
	}
	r, err := view.Pick(all, name)
	if err != nil {
		return err
	}
	if s.Watch {
		return a.watch(ctx, c, s, r.Name)
	}
	st := report.StatusOf(r, revisions, time.Now())
	if err := a.print(&s.Common, st.Text(), statuses{[]report.Status{st}}); err != nil {
		return err
	}
	return stands(st.NeedsSomebody)
}

// revisionsOf reads all Revisions.
func revisionsOf(ctx context.Context, c *cluster.Cluster) (report.Revisions, error) {
	all, err := c.Revisions(ctx)
	if err != nil {
		return nil, err
	}
	return (&view.Seen{Revisions: all}).Revision, nil
}

func (a *app) overview(s *settings.Status, all []v1alpha1.Rollout, revisions report.Revisions) error {
	list := statuses{Rollouts: []report.Status{}}
	needs := false
	for i := range all {
		st := report.StatusOf(&all[i], revisions, time.Now())
		list.Rollouts, needs = append(list.Rollouts, st), needs || st.NeedsSomebody
	}
	if err := a.print(&s.Common, report.Overview(list.Rollouts), list); err != nil {
		return err
	}
	return stands(needs)
}

// stands is the end of a command that has said that something does not go on by itself.
func stands(yes bool) error {
	if yes {
		return &codedError{code: exitStands}
	}
	return nil
}

// clearScreen begins a page on a terminal.
const clearScreen = "\x1b[H\x1b[2J"

func (a *app) watch(ctx context.Context, c *cluster.Cluster, s *settings.Status, name string) error {
	file, isFile := a.out.(*os.File)
	screen := isFile && term.IsTerminal(int(file.Fd()))
	var st report.Status
	said, shown := "", ""
	eye := &sight{a: a, last: time.Now()}
	err := c.Follow(ctx, name, func(r *v1alpha1.Rollout) bool {
		eye.seen()
		revisions, _ := revisionsOf(ctx, c) // without them a rollback is not offered
		st = report.StatusOf(r, revisions, time.Now())
		over := st.Completed || st.Stands
		line := st.Line()
		switch {
		case s.JSON() && r.ResourceVersion == shown: // a watch ends now and then, and the next one begins with the same
		case s.JSON():
			_ = a.line(st)
		case screen:
			_, _ = fmt.Fprint(a.out, clearScreen+st.Text())
		case line[len("15:04:05Z"):] != said:
			_, _ = fmt.Fprintln(a.out, line)
		}
		shown = r.ResourceVersion
		if said = line[len("15:04:05Z"):]; over && !screen && !s.JSON() {
			_, _ = fmt.Fprint(a.out, "\n"+st.Text())
		}
		return over
	}, eye.away)
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted; the rollout goes on")
	case err != nil:
		return err
	}
	return stands(st.NeedsSomebody)
}

func (a *app) why(ctx context.Context, s *settings.Why, node string) error {
	c, err := cluster.Connect(s.Cluster)
	if err != nil {
		return err
	}
	seen, err := c.See(ctx, s.Controller)
	if err != nil {
		return err
	}
	if seen.Node(node) == nil {
		var names []string
		for _, n := range seen.Nodes {
			names = append(names, n.Name)
		}
		slices.Sort(names)
		return view.NotThere("node", node, names)
	}
	rollouts := seen.Rollouts
	if s.Rollout != "" {
		r, err := view.Pick(seen.Rollouts, s.Rollout)
		if err != nil {
			return err
		}
		rollouts = []v1alpha1.Rollout{*r}
	}
	w := report.WhyOf(seen, node, rollouts)
	return a.print(&s.Common, w.Text(), w)
}

func (a *app) history(ctx context.Context, s *settings.History, name string) error {
	c, err := cluster.Connect(s.Cluster)
	if err != nil {
		return err
	}
	all, err := c.Rollouts(ctx)
	if err != nil {
		return err
	}
	r, err := view.Pick(all, name)
	if err != nil {
		return err
	}
	if s.Diff == "" {
		h := report.HistoryOf(r)
		return a.print(&s.Common, h.Text(), h)
	}
	revisions, err := c.Revisions(ctx)
	if err != nil {
		return err
	}
	d, err := report.EntriesDiffer(ctx, r, revisions, s.From, s.To, c.Config)
	if err != nil {
		return err
	}
	return a.print(&s.Common, d.Text(), d)
}

func (a *app) doctor(ctx context.Context, s *settings.Doctor) error {
	c, err := cluster.Connect(s.Cluster)
	if err != nil {
		return err
	}
	seen, err := c.Examine(ctx, cluster.Target{Namespace: s.Namespace, Prefix: leasePrefix, Account: s.Account, Patience: s.Patience})
	if err != nil {
		return err
	}
	r := doctor.Examine(seen)
	if err := a.print(&s.Common, page.Findings(r), r); err != nil {
		return err
	}
	return stands(r.Problems > 0)
}
