// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/examples/internal/kubectl-belay/report"
	"github.com/belayproject/belay/examples/internal/kubectl-belay/view"
	"github.com/belayproject/belay/examples/kubectl-belay/internal/cluster"
	"github.com/belayproject/belay/examples/kubectl-belay/internal/settings"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

func (a *app) plan(ctx context.Context, s *settings.Plan, name string) error {
	c, err := cluster.Connect(s.Cluster)
	if err != nil {
		return err
	}
	seen, err := c.See(ctx, s.Controller)
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
	simulation, err := v.Simulate(seen.Now, rollout.Assumptions{
		Cycle: s.Cycle, WorstCycle: s.WorstCycle, ApproveAfter: s.ApproveAfter,
	})
	if err != nil {
		return err
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
