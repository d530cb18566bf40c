// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/lkg"
)

// AgentOptions are those of [RunAgent]. Node, Work, Syncer.Store and Syncer.Restarter are required, and what
// [configsync.New] requires.
type AgentOptions[T any] struct {
	// Node is the name of the Node that the agent runs on, and of its NodeConfig.
	Node string
	// Syncer has the Codec, the local config, the Store, the Restarter, the validators and the probes. RunAgent makes the
	// Source and the Fetcher where they are nil. It calls Reporter in addition to its own reporters.
	Syncer configsync.Options[T]
	// Work runs with the chosen config. RunAgent calls it once, and cancels its context when ctx ends or when the process
	// must restart with another config. If Work fails before that, RunAgent returns the error, and the next start counts
	// as a crash of a config on trial. If Work returns nil, RunAgent returns nil.
	Work func(ctx context.Context, active configsync.Active[T]) error
	// Exit says how the process before this one ended, where that is known: see [configsync.Syncer.Bootstrap].
	Exit lkg.Exit
	// NodeCondition has RunAgent report the ConfigOK condition of the Node as well. At most one agent per node may set it.
	NodeCondition bool
	// Options are those of the Source, the Fetcher and the reporters.
	Options Options
	// HTTP is the client for all requests. Nil means one of the rest.Config.
	HTTP *http.Client
}

// RunAgent runs an agent that restarts its own process to adopt a new config. It chooses a config from the disk alone,
// reports the start, and calls Work. Until ctx ends it keeps the node at the config that its NodeConfig names; then it
// records that the stop was planned, waits for Work and returns nil.
//
// To adopt a config, RunAgent returns the Restarter's error, wrapped: exit with restart.Code(err), and the service
// manager starts the process again. Other errors mean that the agent can't go on: an option is missing, the local
// config is refused ([*lkg.BaselineError]), or Work has failed. Errors of the API server are in the status and tried
// again; at the start, one that does not answer holds up Work for Syncer.CallTimeout at most.
//
// The definitions must be installed, see [Install]. The agent needs the rights of [NodeConfigRules] and
// [ConfigMapRules], and those of [NodeConditionRules] with NodeCondition. Do not use RunAgent to supervise a child
// process, to push configs ([configsync.Steered]), or with a work queue of your own: build the Syncer yourself.
func RunAgent[T any](ctx context.Context, config *rest.Config, o AgentOptions[T]) error {
	check := option.For("configsync/kube.RunAgent", nil)
	check.Require("config", config, "see rest.InClusterConfig or clientcmd.BuildConfigFromFlags")
	check.Require("AgentOptions.Node", o.Node, "the name of the Node")
	check.Require("AgentOptions.Work", o.Work, "what uses the config")
	check.Require("AgentOptions.Syncer.Store", o.Syncer.Store, "see checkpoint.Open")
	check.Require("AgentOptions.Syncer.Restarter", o.Syncer.Restarter, "see restart.Exit")
	if err := check.Err(); err != nil {
		return err
	}
	parts, shared, err := o.completeSyncer(config)
	if err != nil {
		return fmt.Errorf("configsync/kube.RunAgent: %w", err)
	}
	s, err := configsync.New(ctx, parts)
	if err != nil {
		return err
	}
	active, err := s.Bootstrap(ctx, o.Exit)
	if err != nil {
		return err
	}
	if err := s.Announce(ctx); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Reporting the start, which is tried again", "node", o.Node)
	}
	var failed <-chan error
	if shared != nil {
		failed = shared.failed
	}
	return runWork(ctx, s, failed, func(ctx context.Context) error { return o.Work(ctx, active) })
}

// completeSyncer makes the parts of the Syncer that are nil. shared is nil without an informer of the embedder.
func (o AgentOptions[T]) completeSyncer(
	config *rest.Config,
) (s configsync.Options[T], shared *sharedInformer, err error) {
	s = o.Syncer
	if s.Node == "" {
		s.Node = o.Node
	}
	client, err := NewClient(config, o.HTTP)
	if err != nil {
		return s, nil, err
	}
	var status, condition configsync.Reporter
	if s.Source == nil {
		source, err := NewNodeConfigSource(client, o.Node, o.Options)
		if err != nil {
			return s, nil, err
		}
		s.Source, status, shared = source, source.StatusReporter(), source.shared
	}
	if s.Fetcher == nil {
		if s.Fetcher, err = NewConfigMapFetcher(client, o.Options); err != nil {
			return s, nil, err
		}
	}
	if o.NodeCondition {
		if condition, err = NewNodeConditionReporter(client, o.Node, o.Options); err != nil {
			return s, nil, err
		}
	}
	s.Reporter = configsync.Joined(s.Reporter, configsync.First(status, condition))
	return s, shared, nil
}

// stopTime bounds the record of a planned stop.
const stopTime = 5 * time.Second

// runWork runs a Syncer and the work on its config until one of them ends or ctx does. A planned stop is on record
// before the work is waited for, which may take longer than the process has.
func runWork[T any](
	ctx context.Context, s *configsync.Syncer[T], failed <-chan error, work func(context.Context) error,
) error {
	both, stop := context.WithCancel(ctx)
	defer stop()
	worked, synced := make(chan error, 1), make(chan error, 1)
	go func() { worked <- work(both) }()
	go func() { synced <- s.Run(both) }()
	var stopErr, informerErr error
	planned := true
	select {
	case <-ctx.Done():
	case informerErr = <-failed:
	case err := <-worked:
		worked <- err
		planned = err == nil || isEndOf(ctx, err)
	case err := <-synced:
		synced <- err
		planned = err == nil
	}
	if planned {
		recording, done := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
		stopErr = s.Stopping(recording)
		done()
	}
	stop()
	workErr, syncErr := <-worked, <-synced
	if isEndOf(both, workErr) {
		workErr = nil
	}
	return errors.Join(syncErr, informerErr, workErr, stopErr)
}

// isEndOf reports whether an error says that ctx has ended, and nothing else.
func isEndOf(ctx context.Context, err error) bool {
	if ctx.Err() == nil {
		return false
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err == ctx.Err() || err == context.Cause(ctx) //nolint:errorlint // it is the innermost one
}
