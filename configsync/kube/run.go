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
	// Syncer has the Codec, the local config, the Store, the Restarter and the judges. RunAgent makes its Source and
	// Fetcher where they are nil. Its Reporter is joined with those that RunAgent makes.
	Syncer configsync.Options[T]
	// Work is what the config is for. It is called once, with the chosen config, and ends with its context, which ends
	// when another config is to be taken up. If it returns an error before, the agent ends with that, and the next start
	// counts against a config on trial, as a crash does; if it returns nil, the agent has finished and ends with nil.
	Work func(ctx context.Context, active configsync.Active[T]) error
	// Exit says how the process before this one ended, where that is known: see [configsync.Syncer.Bootstrap].
	Exit lkg.Exit
	// NodeCondition has the ConfigOK condition of the Node reported as well. One agent on a node may do that.
	NodeCondition bool
	// Options are those of the Source, the Fetcher and the reporters.
	Options Options
	// HTTP is the client for all requests. Nil means one of the rest.Config.
	HTTP *http.Client
}

// RunAgent is the life of a process that takes up a config by being started again. It chooses a config from the disk
// alone, reports the start, and calls Work. Until ctx ends it keeps the node at the config that its NodeConfig names;
// then it records that the stop was planned, waits for Work and returns nil.
//
// An error of Syncer.Restarter ends it and is returned as it is wrapped: end the process with restart.Code of it, and
// have it started again. Other errors mean that the agent can't go on: an option is missing, the local config is
// refused ([*lkg.BaselineError]), or Work has failed. Errors of the API server are in the status and tried again; at
// the start, one that does not answer holds up Work for Syncer.CallTimeout at most.
//
// The definitions have to be installed, see [Install]. The process takes [NodeConfigRules] and [ConfigMapRules], and
// [NodeConditionRules] with NodeCondition. A supervisor of another process, a Steered, and an agent with a work queue
// of its own make these parts themselves.
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
	var workErr, syncErr, stopErr, informerErr error
	select {
	case <-ctx.Done():
	case informerErr = <-failed:
	case workErr = <-worked:
		worked <- workErr
	case syncErr = <-synced:
		synced <- syncErr
	}
	planned := ctx.Err() != nil || workErr == nil && syncErr == nil
	if planned {
		recording, done := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
		stopErr = s.Stopping(recording)
		done()
	}
	stop()
	workErr, syncErr = <-worked, <-synced
	if syncErr != nil {
		return syncErr
	}
	if planned && errors.Is(workErr, context.Canceled) {
		workErr = nil
	}
	return errors.Join(informerErr, workErr, stopErr)
}
