// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"golang.org/x/term"
	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/examples/kubectl-belay/cluster"
	"github.com/belayproject/belay/examples/kubectl-belay/doctor"
	"github.com/belayproject/belay/examples/kubectl-belay/report"
	"github.com/belayproject/belay/examples/kubectl-belay/settings"
	"github.com/belayproject/belay/examples/kubectl-belay/view"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// leasePrefix begins the names of the Leases of examples/controller; the domain follows.
const leasePrefix = "belay-rollout-"

// app is one run of the command.
type app struct{ out, errs io.Writer }

// print writes a report in the form that was asked for.
func (a *app) print(c *settings.Common, text string, object any) error {
	if c.JSON() {
		raw, err := json.MarshalIndent(object, "", "  ")
		if err != nil {
			return err
		}
		text = string(raw) + "\n"
	}
	_, err := fmt.Fprint(a.out, text)
	return err
}

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
	if name == "" && len(all) > 1 && !s.Watch {
		return a.overview(s, all)
	}
	r, err := view.Pick(all, name)
	if err != nil {
		return err
	}
	if s.Watch {
		return a.watch(ctx, c, s, r.Name)
	}
	st := report.StatusOf(r, time.Now())
	if err := a.print(&s.Common, st.Text(), statuses{[]report.Status{st}}); err != nil {
		return err
	}
	return stands(st.NeedsSomebody)
}

func (a *app) overview(s *settings.Status, all []v1alpha1.Rollout) error {
	list := statuses{Rollouts: []report.Status{}}
	needs := false
	for i := range all {
		st := report.StatusOf(&all[i], time.Now())
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
	said := ""
	err := c.Follow(ctx, name, func(r *v1alpha1.Rollout) bool {
		st = report.StatusOf(r, time.Now())
		over := st.Completed || st.Stands
		line := st.Line()
		switch {
		case s.JSON():
			_ = json.NewEncoder(a.out).Encode(st)
		case screen:
			_, _ = fmt.Fprint(a.out, clearScreen+st.Text())
		case line[len("15:04:05Z"):] != said:
			_, _ = fmt.Fprintln(a.out, line)
		}
		if said = line[len("15:04:05Z"):]; over && !screen && !s.JSON() {
			_, _ = fmt.Fprint(a.out, "\n"+st.Text())
		}
		return over
	})
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
	seen, err := c.See(ctx)
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

func (a *app) plan(ctx context.Context, s *settings.Plan, name string) error {
	c, err := cluster.Connect(s.Cluster)
	if err != nil {
		return err
	}
	seen, err := c.See(ctx)
	if err != nil {
		return err
	}
	r, err := planned(seen, s, name)
	if err != nil {
		return err
	}
	v, err := seen.Decide(r)
	if err != nil {
		return err
	}
	if s.AssumeAgents {
		for i := range v.Snapshot.Nodes {
			if n := &v.Snapshot.Nodes[i]; n.Shadow == nil || !n.Shadow.Report.Known {
				n.Shadow = &protocol.Shadow{Node: n.Name, UID: n.UID, Report: protocol.Report{Known: true}}
			}
		}
	}
	simulation, err := rollout.Simulate(v.Snapshot, v.Policy, seen.Now, rollout.Assumptions{
		Cycle: s.Cycle, WorstCycle: s.WorstCycle, ApproveAfter: s.ApproveAfter,
	})
	if err != nil {
		return v1alpha1.InFields(r, err)
	}
	p := report.PlanOf(v, simulation, seen.Now)
	if err := a.print(&s.Common, p.Text(s.All), p); err != nil {
		return err
	}
	return stands(p.Stands())
}

// planned is the rollout to plan: one of the cluster, changed as the command line says, or one of a file.
func planned(seen *view.Seen, s *settings.Plan, name string) (*v1alpha1.Rollout, error) {
	var r *v1alpha1.Rollout
	if s.File != "" {
		fromFile, err := readRollout(s.File)
		if err != nil {
			return nil, err
		}
		if name != "" && name != fromFile.Name {
			return nil, fmt.Errorf("the Rollout in %s is %q, and not %q", s.File, fromFile.Name, name)
		}
		if is, err := view.Pick(seen.Rollouts, fromFile.Name); err == nil {
			r = is.DeepCopy()
			r.Spec = fromFile.Spec
			r.Generation++
		} else {
			r = fromFile
		}
	} else {
		is, err := view.Pick(seen.Rollouts, name)
		if err != nil {
			return nil, err
		}
		r = is.DeepCopy()
	}
	if s.Revision != "" {
		revision, found := seen.Revision(s.Revision)
		if !found {
			var names []string
			for i := range seen.Revisions {
				names = append(names, seen.Revisions[i].Name)
			}
			return nil, view.NotThere("Revision", s.Revision, names)
		}
		r.Spec.Revision = v1alpha1.PinnedRevision{Name: revision.Name, Digest: revision.Spec.Digest}
	}
	return r, nil
}

// readRollout reads a Rollout that need not exist. Fields that are not known are errors.
func readRollout(path string) (*v1alpha1.Rollout, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &v1alpha1.Rollout{}
	if err := yaml.UnmarshalStrict(text, r); err != nil {
		return nil, fmt.Errorf("%s is no Rollout: %w", path, err)
	}
	if r.APIVersion != v1alpha1.GroupVersion.String() || r.Kind != v1alpha1.RolloutKind || r.Name == "" {
		return nil, fmt.Errorf("%s is no Rollout: it has apiVersion %q, kind %q and metadata.name %q, want %q, %q and a name", path, r.APIVersion, r.Kind,
			r.Name, v1alpha1.GroupVersion, v1alpha1.RolloutKind)
	}
	if r.Spec.Domain == "" {
		r.Spec.Domain = v1alpha1.DefaultDomain
	}
	r.UID = "planned"
	r.Status = v1alpha1.RolloutStatus{}
	return r, nil
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
	d, err := report.EntriesDiffer(r, revisions, s.From, s.To)
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
	if err := a.print(&s.Common, r.Text(), r); err != nil {
		return err
	}
	return stands(r.Problems > 0)
}
