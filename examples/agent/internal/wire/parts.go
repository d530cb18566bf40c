// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"github.com/belayproject/belay/examples/internal/agent/connect"

	"context"
	"errors"
	"io/fs"

	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/file"
	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/kubelet"
	"github.com/belayproject/belay/configsync/restart"
	"github.com/belayproject/belay/examples/agent/internal/node"
	"github.com/belayproject/belay/examples/internal/agent/drift"
	"github.com/belayproject/belay/examples/internal/agent/probe"
	"github.com/belayproject/belay/examples/internal/agent/settings"
	"github.com/belayproject/belay/lkg"
)

// Options are those of a Syncer that does what the flags say. inUse gives the config that the child runs; probes
// ask it, after the first start. w looks at what lies below; nil leaves the probes of the node out. Nothing is
// connected yet. The error names the flag.
func Options(
	s *settings.Run, store configsync.Store, child *restart.Supervisor,
	inUse func() *kubelet.Config, w *kubelet.Witness,
) (node.Options, error) {
	o := s.On(store)
	o.Restarter = child
	o.RetryMin, o.RetryMax = s.RetryMin, s.RetryMax
	o.ProbeInterval, o.ProbeTimeout = s.ProbeInterval, s.ProbeTimeout
	o.Probes = []configsync.Probe{alive{child}}
	for _, u := range s.HealthURLs {
		p, err := probe.New(u, func() (address, port string, ok bool) { return inUse().Healthz() })
		if err != nil {
			return o, err
		}
		o.Probes = append(o.Probes, p)
	}
	for _, u := range s.WantedURLs {
		p, err := probe.New(u, func() (address, port string, ok bool) { return inUse().Healthz() })
		if err != nil {
			return o, err
		}
		o.Probes = append(o.Probes, configsync.Wanted(p))
	}
	ofNode, err := nodeProbes(s, w)
	if err != nil {
		return o, err
	}
	o.Probes = append(o.Probes, ofNode...)
	o.Probes = append(o.Probes, s.Own.Probes...)
	o.Ack = ack(s)
	if dir, ok := s.Directory(); ok {
		src := &file.Source{Dir: dir}
		o.Source, o.Fetcher = src, src
	}
	o.Reporter = &newsLog{}
	if s.Kubeconfig == "" {
		return o, nil
	}
	return o, addServer(&o, s)
}

// addServer adds the parts at the API server.
func addServer(o *node.Options, s *settings.Run) error {
	client, err := connect.Client(s.Kubeconfig)
	if err != nil {
		return err
	}
	condition, err := kube.NewNodeConditionReporter(client, s.NodeName, kube.Options{Reread: settings.Reread})
	if err != nil {
		return err
	}
	log := o.Reporter
	o.Reporter = configsync.Joined(log, condition)
	switch s.Source {
	case settings.SourceNodeConfig:
		err = nodeConfig(o, client, s, log, condition)
	case settings.SourceAnnotation:
		o.Source, err = kube.NewAnnotationSource(client, s.NodeName, kube.Options{RetryMax: s.RetryMax})
	case settings.SourceLegacy:
		o.Source, err = kube.NewLegacySource(client, s.NodeName, kube.Options{RetryMax: s.RetryMax})
	case settings.SourceShadow: // what is wanted is told by package update
	default:
		return nil // the wanted config comes from elsewhere; the node's condition is reported all the same
	}
	if err != nil {
		return err
	}
	o.Fetcher, err = kube.NewConfigMapFetcher(client, kube.Options{RetryMax: s.RetryMax})
	return err
}

// nodeConfig takes the source from the node's NodeConfig, and reports there too, and there first: whoever assigns
// configs waits for that.
func nodeConfig(o *node.Options, client dynamic.Interface, s *settings.Run, log, condition configsync.Reporter) error {
	src, err := kube.NewNodeConfigSource(client, s.NodeName, kube.Options{RetryMax: s.RetryMax})
	if err != nil {
		return err
	}
	o.Source, o.Reporter = src, configsync.Joined(log, configsync.First(src.StatusReporter(), condition))
	return nil
}

// Put has the child find a config where it reads it. file watches the place of settings.Local.Place.
func Put(ctx context.Context, file *drift.Watch, o node.Options, a configsync.Active[*kubelet.Config]) error {
	text, ok, err := kubelet.Text(o.Codec, a.Key, a.Object)
	switch {
	case err != nil:
		return err
	case !ok:
		return file.Remove(ctx)
	}
	return file.Render(ctx, text)
}

// alive passes while the child runs: an address may be answered by somebody else.
type alive struct{ child *restart.Supervisor }

// Name implements configsync.Probe.
func (alive) Name() string { return "child" }

// Check implements configsync.Probe.
func (p alive) Check(context.Context) error {
	if p.child.PID() == 0 {
		return errors.New("it is not running")
	}
	return nil
}

// Refusal is the status of a node whose agent refuses to start because the local config is not good; ok is false where
// it is good. Without it, the last good news would stay in the node's condition.
func Refusal(ctx context.Context, o node.Options) (s configsync.Status, ok bool) {
	var records lkg.Getter = noRecords{}
	if o.Store != nil {
		records = o.Store
	}
	e, err := configsync.Explain(ctx, records, o)
	if err != nil || e.Next.Refuse == nil {
		return s, false
	}
	return configsync.Status{
		Assigned: e.State.Current.Ref, LastKnownGood: e.State.LastKnownGood, Local: string(e.Next.Origin),
		Condition: e.Next.Condition, Error: e.Next.Refuse.Error(),
	}, true
}

// noRecords are those of a node without a state directory.
type noRecords struct{}

// Get implements lkg.Getter.
func (noRecords) Get(context.Context, string) ([]byte, error) { return nil, fs.ErrNotExist }
