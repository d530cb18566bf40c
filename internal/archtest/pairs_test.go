// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest_test

import (
	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/checkpoint/checkpointtest"
	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/configsync/file"
	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/restart"
	"github.com/belayproject/belay/drain"
	drainkube "github.com/belayproject/belay/drain/kube"
	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/lkg"
	machinecontroller "github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/etcd"
	machinekube "github.com/belayproject/belay/machine/kube"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
	rolloutkube "github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/nodeagent"
	"github.com/belayproject/belay/rollout/rollouttest"
)

// Where two packages meet, the consumer declares a small interface and the other has a method that satisfies it as it is.
// The compiler checks each such pair here, in one place, so that neither package has to import the other. Without the line an
// interface and its implementation can drift apart unseen, and every embedder has to write the adapter that the design promises
// away.
var (
	_ lkg.Store        = (*checkpoint.Store)(nil)
	_ lkg.Store        = (*checkpointtest.Memory)(nil)
	_ lkg.Getter       = (*checkpoint.Reader)(nil)
	_ configsync.Store = (*checkpoint.Store)(nil)
	_ configsync.Store = (*checkpointtest.Memory)(nil)
	_ configsync.Store = (*configsynctest.Disk)(nil)

	_ configsync.Source  = (*kube.NodeConfigSource)(nil)
	_ configsync.Source  = (*file.Source)(nil)
	_ configsync.Fetcher = (*file.Source)(nil)

	_ configsync.Restarter = (*restart.Supervisor)(nil)
	_ configsync.Restarter = restart.Exit{}

	_ nodeagent.Disk    = (*checkpoint.Store)(nil)
	_ nodeagent.Disk    = (*checkpointtest.Memory)(nil)
	_ nodeagent.Shadows = (*rollouttest.Shadows)(nil)

	_ nodeagent.ConfigSyncer    = (*configsync.Steered[string])(nil)
	_ nodeagent.ConfigDisrupter = (*configsync.Steered[string])(nil)

	_ controller.MarkingDrainer = (*drain.NodeDrainer)(nil)
	_ controller.Health         = rolloutkube.Health(nil)

	_ rolloutkube.Drains   = (*drain.Drainer)(nil)
	_ machinekube.Drains   = (*drain.Drainer)(nil)
	_ rolloutkube.Informer = drainkube.Informer(nil)
	_ machinekube.Informer = drainkube.Informer(nil)

	_ = rolloutkube.ControllerOptions{Lead: identity.Elect(nil, identity.LeadOptions{})}

	_ machinecontroller.Drainer    = (*drain.NodeDrainer)(nil)
	_ machinecontroller.Members    = (*etcd.Client)(nil)
	_ machinecontroller.MemberList = (*etcd.Client)(nil)

	_ machinecontroller.Budget = (*rollout.Slots)(nil)
	_ machinecontroller.Left   = (*rollout.Slots)(nil)
	_ machinecontroller.Blame  = (*rollout.Slots)(nil)
	_ rollout.Holders          = machinekube.Machines(nil)
)
