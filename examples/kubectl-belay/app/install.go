// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/belayproject/belay/examples/kubectl-belay/internal/cluster"
	"github.com/belayproject/belay/examples/kubectl-belay/internal/install"
	"github.com/belayproject/belay/examples/kubectl-belay/internal/settings"
)

func installCommand(a *app) *cobra.Command {
	var s settings.Install
	c := checked(&s, 0, 0, "install", func(ctx context.Context, _ []string) error { return a.install(ctx, &s) })
	c.Short = "Apply the definitions, rights and admission policies of belay"
	c.Long = c.Short + ", by server-side apply.\n\nApplied are all CustomResourceDefinitions; the namespaces, rights and policies of the controller, of agents in pods, " +
		"and of\npeople who use this plugin. Programs are not started: see examples/manifests. " +
		"Applying again changes what differs.\n" +
		"What a newer belay has installed is not replaced, except with --downgrade.\n\n" + exitCodes
	return c
}

// installed is what install prints for programs.
type installed struct {
	DryRun  bool             `json:"dryRun"`
	Objects []install.Result `json:"objects"`
}

func (a *app) install(ctx context.Context, s *settings.Install) error {
	config, err := cluster.Config(s.Cluster)
	if err != nil {
		return err
	}
	config.UserAgent, config.QPS = "kubectl-belay", -1
	all, suffix := installed{DryRun: s.DryRun, Objects: []install.Result{}}, ""
	if s.DryRun {
		suffix = " (dry run)"
	}
	o := install.Options{CRDs: s.CRDs, DryRun: s.DryRun, Force: s.Force, Downgrade: s.Downgrade}
	err = install.Run(ctx, config, o, func(r install.Result) {
		all.Objects = append(all.Objects, r)
		if !s.JSON() {
			name := strings.TrimPrefix(r.Namespace+"/"+r.Name, "/")
			_, _ = fmt.Fprintf(a.out, "%s %s %s%s\n", r.Kind, name, r.Outcome, suffix)
		}
	})
	if s.JSON() {
		return cmp.Or(err, a.print(&s.Common, "", all))
	}
	return err
}
